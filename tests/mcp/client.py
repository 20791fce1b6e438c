"""The official Python client: connects to a command or a URL, makes calls, and prints one line of JSON for each."""

import asyncio
import json
import os
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
import httpx2
import mcp_types as types


async def main() -> None:
    given = json.loads(sys.argv[1])
    asked = []

    async def answer(context, params):
        asked.append(params.message)
        if given["answer"] == "approve":
            return types.ElicitResult(action="accept", content={"decision": "approve"})
        return types.ElicitResult(action=given["answer"])

    callback = answer if given.get("answer") else None
    if "url" in given:
        sent = {"Authorization": "Bearer " + os.environ["SECRET_OF_GUARD"]} if "SECRET_OF_GUARD" in os.environ else {}
        server = streamable_http_client(given["url"], http_client=httpx2.AsyncClient(headers=sent, timeout=60))
    else:
        server = StdioServerParameters(command=given["command"][0], args=given["command"][1:], env=given.get("env"))
    async with Client(server, mode=given["mode"], elicitation_callback=callback) as client:
        tools = await client.list_tools()
        print(json.dumps({"tools": sorted(tool.name for tool in tools.tools)}), flush=True)
        for name, arguments in given["calls"]:
            try:
                result = await client.call_tool(name, arguments)
                text = "\n".join(getattr(block, "text", "") for block in result.content)
                line = {"text": text, "error": bool(result.is_error), "structured": result.structured_content}
            except Exception as error:
                line = {"raised": str(error)}
            line["asked"] = len(asked)
            print(json.dumps(line), flush=True)


asyncio.run(main())
