"""A server of MCP that writes its frames by hand, so that it can do what no library would.

It is told by one argument of JSON what to do:

  log       a file; each start, and each run of a tool, is a line of JSON in it
  name      the name that it gives itself
  version   the revision that it answers with, in place of the client's
  knows     the revisions that it does not refuse
  lists     whether its refusal lists them; by default it does
  ends      whether it ends in place of a refusal
  tools     its tools; by default one, `write`
  tools from  a file with its tools, which is read for each list; "a counter" gives other ones each time
  announces whether it announces with each run that its tools have changed
  about     parts of its answer to `initialize`: instructions, and fields of `serverInfo`
  hold      a file; a run ends when this file exists
  progress  how many reports of progress it writes at once with the result of a run
  lane      a word for its log, to tell apart the servers of one store
  result    the result of a run, in place of its own
  around    frames that it writes before and after the result of a run; "$id" in them is the id of the call
  instead   what it does in place of the answer to a method: {"tools/call": "exit"}, see `instead` below
"""

import json
import os
import sys
import time

given = json.loads(sys.argv[1])
instead = given.get("instead", {})
write = {
    "name": "write",
    "description": "Writes a number",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
}


def log(line):
    # One write of a short line is not mixed with those of other processes.
    with open(given["log"], "ab", buffering=0) as file:
        file.write((json.dumps(line) + "\n").encode())


def send(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(request, **parts):
    send(json.dumps({"jsonrpc": "2.0", "id": request["id"], **parts}))


def otherwise(what, request):
    """What it does in place of an answer."""
    if what == "exit":
        os._exit(3)
    elif what == "silence":
        pass
    elif what == "no json":
        send("Traceback (most recent call last): password hunter2")
    elif what == "no message":
        send('{"password": "hunter2"}')
    elif what == "half a message":
        sys.stdout.write('{"jsonrpc": "2.0", "id": ')
        sys.stdout.flush()
        os._exit(3)
    elif what == "oversized":
        block = "x" * (1 << 20)
        sys.stdout.write('{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "' % request["id"])
        for _ in range(20):
            sys.stdout.write(block)
        send('"}]}}')
    elif what == "oversized, with its id at the end":
        sys.stdout.write('{"jsonrpc": "2.0", "result": {"content": [{"type": "text", "text": "')
        for _ in range(20):
            sys.stdout.write("x" * (1 << 20))
        send('"}]}, "id": %d}' % request["id"])
    elif what == "deep":
        deep = "[" * 100_000 + "]" * 100_000
        send('{"jsonrpc": "2.0", "id": %d, "result": {"content": [], "structuredContent": %s}}' % (request["id"], deep))
    elif what == "half a character":
        send('{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "cut \\ud83d"}]}}' % request["id"])
    elif what == "no character":
        sys.stdout.buffer.write(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "cut \xff"}]}}\n' % request["id"])
        sys.stdout.flush()
    elif what == "too large a number":
        send('{"jsonrpc": "2.0", "id": %d, "result": {"content": [], "structuredContent": {"x": 1e400}}}' % request["id"])
    elif what == "a frame in a log":
        send('[INFO] hunter2 {"jsonrpc": "2.0", "id": %d, "result": {}}' % request["id"])
    elif what == "a deep log":
        send('{"log": ' + "[" * 1_000 + "]" * 1_000 + "}")
    elif what == "an error without a number":
        answer(request, error={"code": "hunter2", "message": "hunter2"})
    elif what == "a deep tool":
        deep = '{"properties": ' * 300 + "{}" + "}" * 300
        send('{"jsonrpc": "2.0", "id": %d, "result": {"tools": [%s, {"name": "deep", "inputSchema": %s}]}}' % (request["id"], json.dumps(write), deep))
    elif what == "the same cursor":
        answer(request, result={"tools": [], "nextCursor": "again"})
    elif what == "other cursors":
        answer(request, result={"tools": [], "nextCursor": str(time.time_ns())})
    elif what == "a number":
        answer(request, result={"tools": 7})
    elif what == "its list after eleven seconds":
        time.sleep(11)
        answer(request, result={"tools": [write]})
    elif what == "another id":
        answer({"id": 4711}, result={"content": [], "tools": []})
    else:
        raise ValueError(what)


def report(request):
    """Writes its progress and the result at once, as a server does that is done within microseconds."""
    token, total = request["params"]["_meta"]["progressToken"], given["progress"]
    result = {"content": [{"type": "text", "text": "done"}]}
    frames = [{"method": "notifications/progress", "params": {"progressToken": token, "progress": n + 1, "total": total}} for n in range(total)]
    frames.append({"id": request["id"], "result": result})
    send("\n".join(json.dumps({"jsonrpc": "2.0", **frame}) for frame in frames))


def noise(request, when):
    for frame in given.get("around", {}).get(when, []):
        send(json.dumps({"jsonrpc": "2.0", **frame}).replace('"$id"', json.dumps(request["id"])))


def run(request):
    params = request["params"]
    key = params.get("_meta", {}).get("countersign/idempotencyKey")
    line = {"tool": params["name"], "args": params.get("arguments"), "key": key}
    log({"begun": line})
    while "hold" in given and not os.path.exists(given["hold"]):
        time.sleep(0.002)
    if "tools/call" in instead:
        return otherwise(instead["tools/call"], request)
    if "progress" in given:
        return report(request)
    if given.get("announces"):
        send('{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}')
    wrote = {"content": [{"type": "text", "text": "wrote %s" % json.dumps(params.get("arguments"))}]}
    noise(request, "before")
    answer(request, result=given.get("result", wrote))
    noise(request, "after")


log({"started": {"process": os.getpid(), "lane": given.get("lane")}})
for text in sys.stdin:
    request = json.loads(text)
    method = request.get("method")
    if method is None:
        log({"heard": request})
    if "id" not in request or method is None:
        continue
    if method == "tools/call":
        run(request)
    elif method in instead:
        otherwise(instead[method], request)
    elif method == "initialize":
        asked = request["params"]["protocolVersion"]
        if asked not in given.get("knows", [asked]):
            if given.get("ends"):
                os._exit(0)
            data = {"data": {"supported": given["knows"]}} if given.get("lists", True) else {}
            answer(request, error={"code": -32602, "message": "Unsupported protocol version", **data})
            continue
        version = given.get("version", asked)
        about = dict(given.get("about", {}))
        info = {"name": given.get("name", "by hand"), "version": "1", **about.pop("serverInfo", {})}
        answer(request, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info, **about})
    elif method == "tools/list":
        listed = given.get("tools", [write])
        if given.get("tools from") == "a counter":
            listed = [{**write, "description": "Writes, at %d" % time.time_ns()}]
        elif "tools from" in given:
            with open(given["tools from"]) as file:
                listed = json.load(file)
        answer(request, result={"tools": listed})
    else:
        answer(request, error={"code": -32601, "message": "method not found"})
