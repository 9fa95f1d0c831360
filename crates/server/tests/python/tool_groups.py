"""The official Python SDK loads and unloads groups of tools: `tool_groups.py MODE URL TOKEN` or `tool_groups.py MODE PROGRAM ARGS...`.

MODE is `legacy` (initialize) or `auto` (server/discover). Prints what it saw as one JSON object; the test that started it judges.
"""

import json
import sys

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

CHANGED = "notifications/tools/list_changed"


async def investigate(server, mode):
    sender, notes = anyio.create_memory_object_stream(16)

    async def on_message(message):
        method = getattr(message, "method", None) or getattr(getattr(message, "root", None), "method", None)
        if method == CHANGED:
            await sender.send(method)

    async with Client(server, mode=mode, message_handler=on_message) as client:

        async def names():
            return [tool.name for tool in (await client.list_tools()).tools]

        async def step(tool, group):
            result = await client.call_tool(tool, {"group": group})
            if result.is_error:
                return {"refused": json.loads(result.content[0].text.split("\n", 1)[1])}
            told = 0
            if result.structured_content.get("tools_changed", {}).get("sent"):
                with anyio.fail_after(20):
                    await notes.receive()
                told = 1
            return {"data": result.structured_content, "told": told, "tools": await names()}

        tools = client.server_capabilities.tools
        seen = {"protocol": client.protocol_version, "list_changed": tools.list_changed, "before": await names()}
        seen["steps"] = [
            await step("load_tool_group", "c64-text"),
            await step("load_tool_group", "c64-text"),
            await step("load_tool_group", "nothing"),
            await step("unload_tool_group", "all"),
            await step("unload_tool_group", "debug"),
            await step("unload_tool_group", "c64-text"),
            await step("load_c64_tool_group", "graphics"),
            await step("unload_c64_tool_group", "graphics"),
        ]
        seen["after"] = await names()
        seen["unasked"] = notes.statistics().current_buffer_used
    return seen


async def main():
    mode, target, *rest = sys.argv[1:]
    if target.startswith("http"):
        headers = {"Authorization": f"Bearer {rest[0]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            seen = await investigate(streamable_http_client(target, http_client=http), mode)
    else:
        seen = await investigate(StdioServerParameters(command=target, args=rest), mode)
    print(json.dumps(seen))


anyio.run(main)
