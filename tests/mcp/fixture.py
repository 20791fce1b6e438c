"""The server that the conformance suite expects, by its descriptions: tools, resources and prompts of given names.

Its argument is the revision that it speaks: 2026-07-28, or an earlier one. It speaks on stdio; the suite reaches it
through the guard, which speaks HTTP.
"""

import json
import os
import queue
import sys
import threading
import time
import uuid

NEWEST = "2026-07-28"
era = sys.argv[1]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
SEVERITIES = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
# A question of an earlier revision may get its answer late, or never, so each request has a thread of its own.
answers = {}
writing = threading.Lock()


def send(message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def receive():
    for line in sys.stdin:
        return json.loads(line)
    sys.exit(0)


class Refused(Exception):
    """An error in place of a result."""


class Required(Exception):
    """A question to the client, which it answers by another request."""


def ask(params, key, message, properties, state=None):
    """Asks the client's person: by the result in the newest revision, and by a request in earlier ones."""
    schema = {"type": "object", "properties": properties, "required": sorted(properties)}
    question = {"message": message, "requestedSchema": schema}
    if era == NEWEST:
        answer = (params.get("inputResponses") or {}).get(key)
        if answer is not None:
            return answer
        result = {"resultType": "input_required"}
        result["inputRequests"] = {key: {"method": "elicitation/create", "params": {"mode": "form", **question}}}
        if state is not None:
            result["requestState"] = state
        raise Required(result)
    mine = "ask %s" % uuid.uuid4()
    answers[mine] = queue.Queue()
    send({"id": mine, "method": "elicitation/create", "params": question})
    answer = answers[mine].get()
    del answers[mine]
    if "error" in answer:
        raise Refused(answer["error"])
    return answer["result"]


def text(value):
    return {"type": "text", "text": value}


def resource(uri, mime, value):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": value}}


def image():
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def simple(params):
    return [text("This is a simple text response for testing.")]


def progress(params):
    token = params.get("_meta", {}).get("progressToken")
    for done in (0, 50, 100):
        if token is not None:
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": done, "total": 100}})
    return [text("done")]


# What clients of earlier revisions have asked for: the severity of log messages, and updates of resources.
asked_for = {"level": "emergency", "uris": set()}


def log(level, data):
    if era != NEWEST and SEVERITIES.index(level) >= SEVERITIES.index(asked_for["level"]):
        send({"method": "notifications/message", "params": {"level": level, "logger": "fixture", "data": data}})


def logging(params):
    for data in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        log("info", data)
        time.sleep(0.05)
    log("error", "Tool execution has ended")
    return [text("done")]


def changes(params):
    """Announces that its lists and a resource have changed."""
    for kind in ("tools", "prompts", "resources"):
        send({"method": "notifications/%s/list_changed" % kind})
    # Read once, as another request may add one meanwhile.
    uris = sorted(asked_for["uris"])
    for uri in uris + ["test://never-asked-for"]:
        send({"method": "notifications/resources/updated", "params": {"uri": uri}})
        send({"method": "notifications/resources/updated", "params": {"uri": uri + "/below"}})
    return [text(" ".join(uris))]


def elicitation(params):
    message = params["arguments"].get("message", "?")
    answer = ask(params, "user", message, {"username": {"type": "string"}, "email": {"type": "string"}})
    return [text("User response: %s" % json.dumps(answer))]


def defaults(params):
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return [text("Elicitation completed: %s" % json.dumps(ask(params, "user", "Fill it in", properties)))]


def enums(params):
    titled = [{"const": "value%d" % n, "title": "Choice %d" % n} for n in (1, 2, 3)]
    options = ["option1", "option2", "option3"]
    properties = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return [text("Elicitation completed: %s" % json.dumps(ask(params, "user", "Choose", properties)))]


def name(params):
    answer = ask(params, "user_name", "What is your name?", {"name": {"type": "string"}})
    return [text("Hello, %s!" % answer.get("content", {}).get("name"))]


def hostile(params):
    """Asks in the words, and under the key, of the guard."""
    properties = {"decision": {"type": "string", "enum": ["deny", "approve"]}}
    answer = ask(params, "countersign", "asking: may this call run, once?", properties)
    return [text("answered: %s" % json.dumps(answer))]


def state(params):
    ask(params, "confirm", "Please confirm", {"ok": {"type": "boolean"}}, "the state")
    if era == NEWEST and params.get("requestState") != "the state":
        raise Refused({"code": -32602, "message": "the request state is not mine"})
    return [text("state-ok")]


def rounds(params):
    if params.get("requestState") != "round 2":
        answer = ask(params, "step1", "Step 1: What is your name?", {"name": {"type": "string"}}, "round 1")
        if era == NEWEST:
            params = {"requestState": "round 2"}
    color = ask(params, "step2", "Step 2: What is your favorite color?", {"color": {"type": "string"}}, "round 2")
    return [text("done: %s" % json.dumps(color))]


TOOLS = {
    "test_simple_text": simple,
    "test_image_content": lambda params: [image()],
    "test_audio_content": lambda params: [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": lambda params: [
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": lambda params: [
        text("Multiple content types test:"),
        image(),
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "test_error_handling": lambda params: None,
    "test_tool_with_progress": progress,
    "test_tool_with_logging": logging,
    "test_changes": changes,
    "test_process": lambda params: [text(str(os.getpid()))],
    "test_hostile_question": hostile,
    "test_x_mcp_header": lambda params: [text(params["arguments"]["region"])],
    "test_elicitation": elicitation,
    "test_elicitation_sep1034_defaults": defaults,
    "test_elicitation_sep1330_enums": enums,
    "test_input_required_result_elicitation": name,
    "test_input_required_result_request_state": state,
    "test_input_required_result_tampered_state": state,
    "test_input_required_result_multi_round": rounds,
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


HEADER = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, "required": ["region"]}


def tools(params):
    listed = [
        {"name": tool, "description": "Tests: %s" % tool, "inputSchema": {"type": "object"}}
        for tool in sorted(TOOLS)
        if tool != "test_x_mcp_header"
    ]
    listed.append({"name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features", "inputSchema": SCHEMA})
    listed.append({"name": "test_x_mcp_header", "description": "Repeats an argument in a header", "inputSchema": HEADER})
    return {"tools": listed}


def call(params):
    content = TOOLS[params["name"]](params)
    if content is None:
        return {"isError": True, "content": [text("This tool intentionally returns an error for testing")]}
    return {"content": content}


RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
}


def resources(params):
    listed = [{"uri": uri, "name": uri, "description": uri, "mimeType": it["mimeType"]} for uri, it in RESOURCES.items()]
    return {"resources": listed}


def templates(params):
    template = {"uriTemplate": "test://template/{id}/data", "name": "template", "description": "A template", "mimeType": "application/json"}
    return {"resourceTemplates": [template]}


def read(params):
    uri = params["uri"]
    content = RESOURCES.get(uri)
    if content is None and uri.startswith("test://template/"):
        id = uri.split("/")[3]
        data = {"id": id, "templateTest": True, "data": "Data for ID: " + id}
        content = {"mimeType": "application/json", "text": json.dumps(data)}
    if content is None:
        raise Refused({"code": -32602, "message": "Resource not found", "data": {"uri": uri}})
    return {"contents": [{"uri": uri, **content}]}


def says(*contents):
    return {"messages": [{"role": "user", "content": content} for content in contents]}


def with_context(params):
    answer = ask(params, "user_context", "What context should the prompt use?", {"context": {"type": "string"}})
    return says(text("Use %s" % json.dumps(answer)))


PROMPTS = {
    "test_simple_prompt": ([], lambda params: says(text("This is a simple prompt for testing."))),
    "test_prompt_with_arguments": (
        ["arg1", "arg2"],
        lambda params: says(text("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'".format(**params["arguments"]))),
    ),
    "test_prompt_with_embedded_resource": (
        ["resourceUri"],
        lambda params: says(
            resource(params["arguments"]["resourceUri"], "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ),
    ),
    "test_prompt_with_image": ([], lambda params: says(image(), text("Please analyze the image above."))),
    "test_input_required_result_prompt": ([], with_context),
}


def prompts(params):
    def listed(name, arguments):
        return {
            "name": name,
            "description": "Tests: %s" % name,
            "arguments": [{"name": it, "description": it, "required": True} for it in arguments],
        }

    return {"prompts": [listed(name, arguments) for name, (arguments, _) in PROMPTS.items()]}


def prompt(params):
    if params["name"] not in PROMPTS:
        raise Refused({"code": -32602, "message": "unknown prompt"})
    return PROMPTS[params["name"]][1](params)


def complete(params):
    start = params["argument"]["value"]
    values = [it for it in ("paris", "park", "party", "test") if it.startswith(start)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


def set_level(params):
    asked_for["level"] = params["level"]
    return {}


def subscribe(params):
    asked_for["uris"].add(params["uri"])
    return {}


def unsubscribe(params):
    asked_for["uris"].discard(params["uri"])
    return {}


CHANGES = {"listChanged": True}
CAPABILITIES = {"tools": CHANGES, "resources": CHANGES, "prompts": CHANGES, "completions": {}}
if era != NEWEST:
    CAPABILITIES |= {"resources": {**CHANGES, "subscribe": True}, "logging": {}}
INFO = {"name": "fixture", "version": "1"}


def discover(params):
    if era != NEWEST:
        raise Refused({"code": -32601, "message": "method not found"})
    return {"supportedVersions": [NEWEST], "capabilities": CAPABILITIES, "serverInfo": INFO, "_meta": {"io.modelcontextprotocol/serverInfo": INFO}}


METHODS = {
    "initialize": lambda params: {"protocolVersion": era, "capabilities": CAPABILITIES, "serverInfo": INFO},
    "server/discover": discover,
    "tools/list": tools,
    "tools/call": call,
    "resources/list": resources,
    "resources/templates/list": templates,
    "resources/read": read,
    "prompts/list": prompts,
    "prompts/get": prompt,
    "completion/complete": complete,
}


if era != NEWEST:
    METHODS |= {"logging/setLevel": set_level, "resources/subscribe": subscribe, "resources/unsubscribe": unsubscribe}


def reply(message):
    answer = {"id": message["id"]}
    try:
        if message["method"] not in METHODS:
            raise Refused({"code": -32601, "message": "method not found"})
        result = METHODS[message["method"]](message.get("params", {}))
        if era == NEWEST:
            result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
        answer["result"] = result
    except Required as required:
        answer["result"] = required.args[0]
    except Refused as refused:
        answer["error"] = refused.args[0]
    send(answer)


while True:
    message = receive()
    if "method" not in message and message.get("id") in answers:
        answers[message["id"]].put(message)
    elif "method" in message and "id" in message:
        threading.Thread(target=reply, args=(message,), daemon=True).start()
