"""The peer of `cargo xtask bench mcp`: the same tool with the same answer on the Python SDK.

Arguments: `stdio` or `http`, and the file with the answer. HTTP clients show the token in RETROSCOPE_TOKEN.
Logs nothing, as `retroscope serve` does by default, and leaves everything else as the SDK has it.
"""

import hmac
import json
import os
import socket
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

TOKEN = os.environ["RETROSCOPE_TOKEN"]


class OneToken:
    """Lets in whoever shows the one token."""

    async def verify_token(self, token: str) -> AccessToken | None:
        if hmac.compare_digest(token, TOKEN):
            return AccessToken(token=token, client_id="bench", scopes=[])
        return None


def server(answer: dict[str, Any], **options: Any) -> MCPServer:
    made = MCPServer("peer", log_level="WARNING", **options)

    @made.tool(description="List the groups of tools, what each is for, and the names of its tools.")
    def list_tool_groups() -> dict[str, Any]:
        return answer

    return made


async def serve_http(answer: dict[str, Any]) -> None:
    # As uvicorn opens its own: asyncio sets TCP_NODELAY only where the protocol is named.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    auth = AuthSettings(issuer_url=url, resource_server_url=url, validate_token_resource=False)
    app = server(answer, auth=auth, token_verifier=OneToken()).streamable_http_app()
    print(f"peer: MCP at {url}", file=sys.stderr, flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


def main() -> None:
    _, transport, file = sys.argv
    with open(file, encoding="utf-8") as opened:
        answer = json.load(opened)
    if transport == "stdio":
        server(answer).run("stdio")
    else:
        anyio.run(serve_http, answer)


main()
