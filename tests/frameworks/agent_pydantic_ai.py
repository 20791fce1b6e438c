"""A PydanticAI agent that pays. The state that an application stores between ask and answer is the JSON of the messages."""

from __future__ import annotations

import asyncio
from typing import Any

from common import BARE, FOLDER, RUN, URL, pay, step, together, told
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, FunctionToolset, ToolDenied
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel


def model(messages: Any, info: Any) -> ModelResponse:
    for part in messages[-1].parts:
        if isinstance(part, ToolReturnPart):
            told(part.content)
            return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart("pay", {"amount": 10}, tool_call_id="c1")])


if BARE:
    tools: Any = FunctionToolset()
else:
    from countersign.pydantic_ai import ClaimedToolset

    tools = ClaimedToolset(URL, run=RUN, lease=1)
tools.tool_plain(requires_approval=True)(pay)
agent: Any = Agent(FunctionModel(model), toolsets=[tools], output_type=[str, DeferredToolRequests])

if step() == "first":
    asked = asyncio.run(agent.run("pay 10"))
    assert isinstance(asked.output, DeferredToolRequests)
    (FOLDER / "state.json").write_bytes(asked.all_messages_json())
else:
    history = ModelMessagesTypeAdapter.validate_json((FOLDER / "state.json").read_bytes())
    answer: Any = True if step() == "yes" else ToolDenied("no")
    together()
    asyncio.run(
        agent.run(message_history=history, deferred_tool_results=DeferredToolResults(approvals={"c1": answer}))
    )
