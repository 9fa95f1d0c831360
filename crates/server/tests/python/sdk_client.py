"""The official Python SDK as a client of retroscope: `sdk_client.py MODE URL TOKEN` or `sdk_client.py MODE PROGRAM ARGS...`.

MODE is `legacy` (initialize) or `auto` (server/discover). The agent behind the server must hold `continue_execution`.
Prints what it saw as one JSON object; the test that started it judges.
"""

import json
import sys

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def text_of(result):
    return [block.text for block in result.content if block.type == "text"]


async def investigate(server, mode):
    seen = {}
    async with Client(server, mode=mode) as client:
        seen["protocol"] = client.protocol_version
        seen["instructions"] = len((client.instructions or "").split())
        tools = (await client.list_tools()).tools
        seen["tools"] = [tool.name for tool in tools]

        status = await client.call_tool("get_status", {})
        seen["status"] = status.structured_content
        seen["same_as_text"] = json.loads(text_of(status)[0]) == status.structured_content

        picture = await client.call_tool("screenshot", {})
        seen["picture"] = [block.type for block in picture.content]
        seen["picture_structured"] = picture.structured_content

        wrong = await client.call_tool("set_breakpoint", {"grp": 1})
        seen["wrong"] = [wrong.is_error, text_of(wrong)[0].splitlines()[0]]

        try:
            await client.call_tool("continue_execution", {"timeout": 300}, read_timeout_seconds=0.5)
            seen["timed_out"] = False
        except MCPError:
            seen["timed_out"] = True
        seen["after_timeout"] = (await client.call_tool("get_status", {})).structured_content["state"]

        steps = []

        async def on_progress(done, total, message):
            steps.append([done, message])

        try:
            await client.call_tool(
                "continue_execution", {"timeout": 300}, read_timeout_seconds=6.5, progress_callback=on_progress
            )
        except MCPError:
            pass
        seen["progress"] = steps
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
