// One request: what will run, who asks, who has agreed, and the buttons. Everything that comes from elsewhere is put
// into text nodes, and nowhere else.

/** An element with attributes and children; a text stays a text. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, what] of Object.entries(value)) made.addEventListener(event, what);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** `12:03`; with the day when it was another one. */
export function time(at) {
  const then = new Date(at);
  return (then.toDateString() === new Date().toDateString() ? clock : day).format(then);
}

/** How long ago, roughly. */
export function ago(milliseconds) {
  const minutes = Math.floor(milliseconds / 60000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  return minutes < 1440 ? `${Math.floor(minutes / 60)} h ago` : `${Math.floor(minutes / 1440)} d ago`;
}

export const names = (by) => by.join(" and ");

const text = (value) => el("span", { class: "text", dir: "ltr" }, value);
const part = (title, ...children) => el("div", { class: "part" }, el("h4", {}, title), children);

/** Named values. */
function fields(list) {
  return el("dl", { class: "fields" }, list.map((field) => [
    el("dt", {}, field.name),
    el("dd", {}, field.note ? el("span", { class: "note" }, field.note) : null, field.lines.map(text)),
  ]));
}

function args(view) {
  const none = view.args.length === 0 ? el("span", { class: "soft" }, "without arguments") : fields(view.args);
  const more = view.args_left_out > 0 && el("p", { class: "soft" }, `${view.args_left_out} more arguments: see the JSON.`);
  return [none, more];
}

function question(it) {
  const pins = it.pins.map((pin) => el("span", { class: "pins" }, `asks again if ${pin.name} changes (now ${pin.lines.join(" ")})`));
  return el("li", { class: "ask" }, el("span", { class: "who" }, it.asked_by), text(it.reason), pins);
}

/** What is shown of an ask that does not change while it waits. */
function shown(ask, host) {
  const { view } = ask;
  const exact = el("pre", {});
  const json = el("details", { on: { toggle: async () => {
    if (!json.open || exact.firstChild) return;
    const now = await host.args(ask.id);
    if (now !== null) exact.replaceChildren(text(now));
  } } }, el("summary", {}, "As JSON, with nothing masked or left out"), exact);
  const wants = ask.wanted_by ? `wanted by ${ask.wanted_by}` : "nobody knows who wants it";
  const meta = el("p", { class: "meta" }, `Agent ${ask.agent} · ${wants} · `, el("time", { title: time(ask.parked_at) }, ago(host.now() - ask.parked_at)));
  return [
    meta,
    view.changed && el("div", { class: "part changed", role: "note" }, "Approved before, but changed since: ", text(view.changed)),
    part("What will run", el("div", { class: "runs" }, args(view), json)),
    view.questions.length > 0 && part("Why you are asked", el("ul", {}, view.questions.map(question))),
    view.notes.length > 0 && part("Written by others, not checked", el("div", { class: "notes" }, view.notes.map((note) =>
      el("p", {}, `${note.author} says, ${note.field.name}: `, note.field.lines.map(text))))),
  ];
}

/** How many have agreed, on what. */
function agreed(ask, host, approve) {
  const { needed, may_approve: may, voted } = ask.quorum;
  if (needed < 2) return may ? [] : [el("p", { class: "soft" }, "You asked for this: somebody else has to approve it.")];
  const most = Math.max(0, ...ask.proposals.map((it) => it.by.length));
  const dots = el("span", { class: "dots", "aria-hidden": "true" }, Array.from({ length: needed }, (_, n) => el("i", { class: n < most ? "on" : "" })));
  const list = ask.proposals.map((it) => {
    const line = `${names(it.by)} ${it.past} (${time(it.at)})`;
    const edited = it.view && [
      el("div", { class: "runs" }, args(it.view)),
      may && !it.by.includes(host.me()) && el("button", { type: "button", on: { click: () => approve(it.args) } }, "Approve these arguments too"),
    ];
    return el("div", { class: "proposal" }, line, edited);
  });
  const own = !may && el("p", { class: "soft" }, "You asked for this: others have to approve it.");
  const said = voted && el("p", { class: "soft" }, "You have approved. Others have to agree.");
  return [part("Who has to agree", el("p", { class: "quorum" }, dots, `${most} of ${needed} approvals`), list, own, said)];
}

/** A card: `root` to put into the page, `update` when the server says something new, `tick` once a second. */
export function card(first, host) {
  let ask = first;
  const { id, view, fingerprint } = first;
  const title = el("h3", { id: `title-${id}`, tabindex: "-1" }, view.tool);
  const chip = el("span", { class: "chip", hidden: true });
  const votes = el("div", { class: "votes" });
  const more = el("div", { class: "more", hidden: true });
  const problem = el("p", { class: "problem", role: "alert", id: `problem-${id}` });

  const send = async (body) => {
    // Not by disabling buttons: the one that was pressed would lose the focus.
    if (root.hasAttribute("aria-busy")) return;
    root.setAttribute("aria-busy", "true");
    problem.textContent = (await host.decide(ask, body)) ?? "";
    root.removeAttribute("aria-busy");
  };
  // Arguments travel as the text that was typed, so that no digit of a number is lost on the way.
  const approve = (args) => send({ verdict: "approve", fingerprint, ...(args === undefined ? {} : { args }) });

  const close = (focus) => {
    more.hidden = true;
    more.replaceChildren();
    root.append(problem);
    problem.textContent = "";
    focus?.focus();
  };
  const open = (label, button, field, act) => {
    const back = el("button", { type: "button", on: { click: () => close(button.opener) } }, "Back");
    more.replaceChildren(el("label", { for: field.id }, label), field, problem, el("div", { class: "row" }, act, back));
    more.hidden = false;
    field.focus();
  };

  const yes = el("button", { type: "button", class: "primary", on: { click: () => approve() } }, "Approve");
  const edit = el("button", { type: "button", on: { click: async () => {
    const now = await host.args(id);
    problem.textContent = now === null ? "The arguments cannot be loaded." : "";
    if (now === null) return;
    const field = el("textarea", { id: `edit-${id}`, class: "code", rows: "6", spellcheck: "false", "aria-describedby": problem.id });
    field.value = readable(now);
    const act = el("button", { type: "button", class: "primary", on: { click: () => approve(field.value) } }, "Approve these arguments");
    field.addEventListener("input", () => {
      problem.textContent = unfit(field.value);
      field.setAttribute("aria-invalid", String(problem.textContent !== ""));
      act.disabled = problem.textContent !== "";
    });
    open("What will run instead, as JSON", { opener: edit }, field, act);
  } } }, "Change …");
  const no = el("button", { type: "button", class: "danger", on: { click: () => {
    const field = el("textarea", { id: `deny-${id}`, rows: "2", maxlength: "4000", placeholder: "Not today: we still need it." });
    const act = el("button", { type: "button", class: "danger", on: { click: () => send({ verdict: "deny", fingerprint, message: field.value }) } }, "Deny");
    open("What the agent is told, word for word", { opener: no }, field, act);
  } } }, "Deny …");
  for (const [button, word] of [[yes, "Approve"], [edit, "Change"], [no, "Deny"]]) {
    button.setAttribute("aria-label", `${word} ${view.headline}`);
  }

  const root = el("article", { class: "card", "aria-labelledby": title.id, "data-ask": id },
    el("header", {}, title, chip), shown(first, host), votes, el("div", { class: "row actions" }, yes, edit, no), more, problem);

  function mayApprove() {
    const { may_approve: may, voted } = ask.quorum;
    edit.disabled = !may || view.blocked || view.kind !== "approval";
    yes.disabled = edit.disabled || voted;
  }
  let before = "";
  function update(now) {
    ask = now;
    const said = JSON.stringify([ask.quorum, ask.proposals, host.me()]);
    if (said !== before) votes.replaceChildren(...agreed(ask, host, approve));
    before = said;
    mayApprove();
    tick();
  }
  function tick() {
    chip.hidden = !ask.expires_at && !view.blocked;
    const left = Math.ceil((ask.expires_at - host.now()) / 1000);
    chip.className = view.blocked || left < 60 ? "chip bad" : "chip warn";
    if (view.blocked) chip.textContent = "must not be approved";
    else if (left <= 0) chip.textContent = "time is over";
    else if (left > 3600) chip.textContent = `until ${time(ask.expires_at)}`;
    else chip.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`;
    root.querySelector("time").textContent = ago(host.now() - ask.parked_at);
  }
  update(first);
  return { root, title, update, tick };
}

/** JSON with a line for each argument, if no digit of a number is lost by it. */
function readable(json) {
  const exact = JSON.stringify(JSON.parse(json)) === json;
  return exact ? JSON.stringify(JSON.parse(json), null, 2) : json;
}

/** Why a text is not the arguments of a call; empty when it is. The tool has its own say, when it is sent. */
function unfit(json) {
  try {
    const value = JSON.parse(json);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? "" : "Arguments are an object: { … }";
  } catch (error) {
    return `This is not JSON yet: ${error.message}`;
  }
}
