"""An agent of PydanticAI whose tools are those of an MCP server: a command (`command`, `env`) or a `url`. Its scripted
model makes the given calls, one after the other, and repeats what it is told. Prints one JSON object."""

import json
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

given = json.load(sys.stdin)
shown = []


def text(part):
    return part.model_response() if isinstance(part, RetryPromptPart) else part.model_response_str()


def model(messages, info):
    shown[:] = [tool.name for tool in info.function_tools]
    told = [part for message in messages for part in message.parts if isinstance(part, (ToolReturnPart, RetryPromptPart))]
    if len(told) < len(given["calls"]):
        tool, arguments = given["calls"][len(told)]
        return ModelResponse(parts=[ToolCallPart(tool, arguments, f"c{len(told)}")])
    return ModelResponse(parts=[TextPart(json.dumps([[part.tool_call_id, text(part)] for part in told]))])


client = given["url"] if "url" in given else StdioTransport(given["command"][0], given["command"][1:], env=given["env"])
toolset = MCPToolset(client, tool_error_behavior="failed", init_timeout=30)
agent = Agent(FunctionModel(model), toolsets=[toolset])
result = agent.run_sync("Go")
json.dump({"told": json.loads(result.output), "tools": sorted(shown)}, sys.stdout)
