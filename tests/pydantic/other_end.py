"""An agent of PydanticAI at the other end: asks, answers, or resumes, as the first argument says. Its input and its
output are one JSON object; the JSON of requests, answers and histories is inside as text, as it would travel."""

import json
import sys

from pydantic import TypeAdapter
from pydantic_ai import Agent, CallDeferred, DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

REQUESTS = TypeAdapter(DeferredToolRequests)
RESULTS = TypeAdapter(DeferredToolResults)
ran = []


def model(messages, info):
    """Makes four calls, one of them with its arguments as text, and then repeats what it is told."""
    if any(isinstance(message, ModelResponse) for message in messages):
        parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        told = [f"{part.tool_call_id} {part.outcome}: {part.content}" for part in parts]
        return ModelResponse(parts=[TextPart("\n".join(told))])
    return ModelResponse(
        parts=[
            ToolCallPart("price", {"of": "Äpfel"}, "c0"),
            ToolCallPart("pay", {"euros": 5, "to": "Zoë"}, "c1"),
            ToolCallPart("pay", '{"euros": 2.5, "to": "bob"}', "c2"),
            ToolCallPart("pay", {"euros": 900, "to": "eve"}, "c3"),
            ToolCallPart("render", {}, "c4"),
        ]
    )


agent = Agent(FunctionModel(model), output_type=[str, DeferredToolRequests])


@agent.tool_plain
def price(of: str) -> str:
    ran.append(["price", of])
    return "2 euros"


@agent.tool(requires_approval=True)
def pay(ctx: RunContext, euros: float, to: str) -> str:
    ran.append(["pay", euros, to])
    return f"paid {to}"


@agent.tool_plain
def render() -> str:
    raise CallDeferred(metadata={"queue": "gpu"})


def ask(given):
    result = agent.run_sync("Pay them")
    requests = REQUESTS.dump_json(result.output).decode()
    return {"requests": requests, "history": result.all_messages_json().decode()}


def answer(given):
    """What a Python service does with the requests of a program in Rust."""
    requests = REQUESTS.validate_json(given["requests"])
    approvals = {id: True for id in given["approve"]}
    approvals |= {id: ToolApproved(override_args=args) for id, args in given["edit"].items()}
    approvals |= {id: ToolDenied(message) for id, message in given["deny"].items()}
    answered_by = {id: "ann" for id in approvals}
    results = requests.build_results(approvals=approvals, calls=given["calls"], answered_by=answered_by)
    # The recipe of the documentation, word for word.
    recipe = {}
    exec(given["recipe"], recipe)
    return {
        "bare": RESULTS.dump_json(results).decode(),
        "bound": recipe["bound"](given["requests"], results),
        "again": REQUESTS.dump_json(requests).decode(),
    }


def resume(given):
    history = ModelMessagesTypeAdapter.validate_json(given["history"])
    results = RESULTS.validate_json(given["results"])
    result = agent.run_sync(message_history=history, deferred_tool_results=results)
    return {"text": result.output, "history": result.all_messages_json().decode()}


given = json.load(sys.stdin)
made = {"ask": ask, "answer": answer, "resume": resume}[sys.argv[1]](given)
# PydanticAI runs the calls of a response in parallel threads.
json.dump(made | {"ran": sorted(ran)}, sys.stdout)
