"""A LangChain agent that pays, with checkpoints in SQLite. A page resumes from the checkpoint that it has shown."""

from __future__ import annotations

import sqlite3
from typing import Any

import common
from common import BARE, FOLDER, URL, step, together, told
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command


class Scripted(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> ChatResult:
        call = {"name": "pay", "args": {"amount": 10}, "id": "c1", "type": "tool_call"}
        if isinstance(messages[-1], ToolMessage):
            told(messages[-1].content)
            message = AIMessage("done")
        else:
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def pay(amount: int) -> str:
    """Pays."""
    return common.pay(amount)


review: Any
if BARE:
    review = HumanInTheLoopMiddleware({"pay": True})
else:
    from countersign.langchain import LedgerMiddleware

    review = LedgerMiddleware(URL, asks=["pay"], lease=1)
saver = SqliteSaver(sqlite3.connect(FOLDER / "checkpoints.db", check_same_thread=False, timeout=30))
agent = create_agent(Scripted(), [pay], middleware=[review], checkpointer=saver)
config: Any = {"configurable": {"thread_id": "t1"}}


def shown() -> Any:
    """The checkpoint at which the person was asked."""
    return next(it.config for it in agent.get_state_history(config) if it.interrupts)


if step() == "first":
    agent.invoke({"messages": [("user", "pay 10")]}, config, durability="sync")
elif step() == "edit":
    message = agent.get_state(config).values["messages"][-1]
    message.tool_calls[0]["args"] = {"amount": 9999}
    agent.update_state(config, {"messages": [message]}, as_node="model")
else:
    verdict = "approve" if step() == "yes" else "reject"
    at = shown() if (FOLDER / "from-checkpoint").exists() else config
    if (FOLDER / "branch").exists():
        at = agent.update_state(shown(), None)
        agent.invoke(None, at)
        at = config
    together()
    if (FOLDER / "restarts").exists():
        agent.invoke(None, config)
    else:
        agent.invoke(Command(resume={"decisions": [{"type": verdict}]}), at, durability="sync")
