// One request, or several about equal calls: the call, its questions, the votes, and the buttons.

import { CONFIRM } from "./bulk.js";
import { ago, el, names, time, worded } from "./element.js";
import { previews } from "./previews.js";
import { conversation } from "./run.js";
import { box, ends } from "./seen.js";

const text = (value) => el("span", { class: "text", dir: "ltr" }, value);
const part = (title, ...children) => el("div", { class: "part" }, el("h4", {}, title), children);

/** A value, and above it how long it is, and whether the model wrote it for people. A long one scrolls in its box. */
function value(field) {
  const notes = [field.note, field.for_people && "in the model's words"].filter(Boolean).join(", ");
  const shown = box(el, `The text of ${field.name}`, field.lines.map(text));
  if (!field.repeated) return [notes && el("span", { class: "note" }, notes), shown];
  return el("details", { class: "repeated" }, el("summary", {}, [field.note, "shown in the change above"].filter(Boolean).join(", ")), shown);
}

/** Named values. */
function fields(list) {
  return el("dl", { class: "fields" }, list.map((field) => [el("dt", {}, field.name), el("dd", {}, value(field))]));
}

function args(view) {
  const none = view.args.length === 0 ? el("span", { class: "soft" }, "without arguments") : fields(view.args);
  const more = view.args_left_out > 0 && el("p", { class: "soft" }, `${view.args_left_out} more arguments are not shown.`);
  return [none, more];
}

function question(it) {
  return el("li", { class: "ask" }, el("span", { class: "who" }, it.asked_by), el("span", { class: "text", dir: "ltr" }, worded(it.reason)));
}

/** What a person needs only at times: what an approval is bound to, notes, the exact JSON, and the conversation. */
function details(ask, exact, around) {
  const { view } = ask;
  const pins = view.questions.flatMap((it) => it.pins.map((pin) => el("li", {}, el("span", { class: "who" }, it.asked_by),
    text(`asks again if ${pin.name} changes (now ${pin.lines.join(" ")})`))));
  const note = (it) => el("li", {}, el("span", { class: "who" }, it.author), text(`${it.field.name}: `), it.field.lines.map(text));
  const bound = el("li", {}, text(`The approval is bound to ${ask.fingerprint}`));
  return el("details", { class: "part details" }, el("summary", {}, "Details"),
    el("ul", { class: "notes" }, pins, view.notes.map(note), bound), exact, around);
}

/** The button that opens a text which is too long to be shown at first. Until it is open, the call cannot be approved. */
function opener(show) {
  return el("p", { class: "cut" }, el("span", {}, "Some of the text is left out: open it before you approve."),
    el("button", { type: "button", on: { click: () => show() } }, "Show everything"));
}

/** The exact JSON of the arguments, which is loaded when it is opened. */
function exactly(ask, host) {
  const exact = el("pre", {});
  const json = el("details", { on: { toggle: async () => {
    if (!json.open || exact.firstChild) return;
    const whole = await host.whole(ask.id);
    if (whole) exact.replaceChildren(text(whole.args));
  } } }, el("summary", {}, "As JSON, with nothing masked or left out"), exact);
  return json;
}

/** The call in the order of every surface: who wants what, why it is asked about, the change, the arguments. */
function call({ view, no_caller: gone }, show) {
  const before = view.denied_before;
  const origins = view.origins ?? [];
  const from = (it) => el("li", { class: it.warning && "warned" }, el("b", { class: "text" }, it.field), " ", el("span", { class: "text", dir: "ltr" }, worded(it.text)));
  return [
    el("p", { class: "sentence" }, worded(view.title)),
    gone && el("div", { class: "part changed", role: "note" }, text(`${gone[0].toUpperCase()}${gone.slice(1)}`)),
    before && el("div", { class: "part changed", role: "note" }, text(`${before[0].toUpperCase()}${before.slice(1)}`)),
    view.changed && el("div", { class: "part changed", role: "note" }, "Approved before, but changed since: ", text(view.changed)),
    origins.some((it) => it.warning) && el("div", { class: "part changed", role: "note" }, el("ul", { class: "origins" }, origins.filter((it) => it.warning).map(from))),
    view.questions.length > 0 && el("div", { class: "part why" }, el("h4", { class: "hear" }, "Why you are asked"), el("ul", {}, view.questions.map(question))),
    view.previews.length > 0 && el("div", { class: "part previews" }, el("h4", { class: "hear" }, "What it would do"), previews(view.previews, show)),
    part("What will run", el("div", { class: "runs" }, args(view), show && view.left_out && opener(show))),
    origins.some((it) => !it.warning) && part("Where the values come from", el("ul", { class: "origins" }, origins.filter((it) => !it.warning).map(from))),
    el("i", { class: "end", "aria-hidden": "true" }),
  ].filter(Boolean);
}

/** The votes, by the arguments that they approve. `show` opens the elided text of the proposals. */
function agreed(ask, host, approve, show) {
  const { needed, may_approve: may } = ask.quorum;
  if (!ask.quorum.may_decide) return [el("p", { class: "soft" }, "You may see this call, and not decide it.")];
  // Where certain people have to approve, the question says who.
  const because = ask.quorum.of_people ? "This is for other people" : "You asked for this";
  if (needed < 2) return may ? [] : [el("p", { class: "soft" }, `${because}: another person has to approve it.`)];
  const most = Math.max(0, ...ask.proposals.map((it) => it.by.length));
  const dots = el("span", { class: "dots", "aria-hidden": "true" }, Array.from({ length: needed }, (_, n) => el("i", { class: n < most ? "on" : "" })));
  const list = ask.proposals.map((it) => {
    const line = `${names(it.by)} ${it.past} (${time(it.at)})`;
    const edited = it.view && [
      el("div", { class: "runs" }, args(it.view), it.left_out && opener(show)),
      may && !it.own && el("button", { type: "button", disabled: it.left_out, on: { click: () => approve(it.args) } }, "Approve these arguments too"),
    ];
    return el("div", { class: "proposal" }, line, edited);
  });
  const own = !may && el("p", { class: "soft" }, `${because}: others have to approve it.`);
  const said = ask.quorum.voted && el("p", { class: "soft" }, "You have approved. Others have to agree.");
  return [part("Who has to agree", el("p", { class: "quorum" }, dots, `${most} of ${needed} approvals`), list, own, said)];
}

/**
 * A card: `root` to put into the page, `update` when the server says something new, `tick` once a second. `members` are the
 * requests that it decides about, each with its own fingerprint: the ones that it was made for, or fewer.
 */
export function card(first, host) {
  let ask = first;
  let members = [first, ...(first.same ?? [])].map(({ id, fingerprint }) => ({ id, fingerprint }));
  /** Whether the elided text was opened. */
  let opened = !first.left_out;
  /** The complete proposals, once they were opened; the server's shortened ones until then. */
  let proposals = null;
  const { id, key, view } = first;
  const isSeen = () => !ask.left_out || members.every((member) => host.opened.has(member.fingerprint));
  opened = isSeen();
  /** A row shows only one line until it is opened. */
  let unfolded = !host.rows || host.drafts().get(key) !== null;
  /** All of the call has been in the page: the row says all of it, or was unfolded. */
  let read = unfolded || first.brief;
  const fold = el("button", { type: "button", class: "fold", "aria-expanded": String(unfolded), on: { click: () => unfold(!unfolded) } }, view.tool);
  const title = el("h3", { id: `title-${id}`, tabindex: "-1" }, host.rows ? fold : view.tool);
  const choice = el("input", { type: "checkbox", class: "choice", "aria-label": `Select ${view.headline}`, on: { change: () => host.chose() } });
  const line = el("p", { class: "line", hidden: !host.rows }, worded(ask.line));
  const chip = el("span", { class: "chip", hidden: true });
  const apart = el("button", { type: "button", class: "quiet", on: { click: () => host.split(it) } }, "Show one by one");
  const many = el("p", { class: "many", hidden: true }, "…", apart);
  const body = el("div", {});
  const votes = el("div", { class: "votes" });
  /** What stands behind "Details": after the votes, and above the buttons, which stay at the lower edge. */
  const rest = el("div", {});
  const more = el("div", { class: "more", hidden: true });
  const problem = el("p", { class: "problem", role: "alert", id: `problem-${id}` });

  const send = async (verdict) => {
    // Not by disabling buttons: the one that was pressed would lose the focus.
    if (root.hasAttribute("aria-busy")) return;
    root.setAttribute("aria-busy", "true");
    problem.textContent = (await host.decide(it, verdict)) ?? "";
    root.removeAttribute("aria-busy");
  };
  // Arguments are sent as the text that was typed, so that no number loses digits in a parser.
  const approve = (args) => send({ verdict: "approve", ...(args === undefined ? {} : { args }) });

  const close = (focus) => {
    host.drafts().drop(key);
    root.classList.remove("editing");
    more.hidden = true;
    more.replaceChildren();
    foot.append(problem);
    problem.textContent = "";
    update(ask);
    focus?.focus();
  };
  /** A form in place of the buttons: while it is open, there is no other way to answer. */
  const open = (kind, label, button, field, act) => {
    const back = el("button", { type: "button", on: { click: () => close(button) } }, "Back");
    if (["edit", "deny"].includes(kind)) field.addEventListener("input", () => host.drafts().put(key, { id, tool: view.tool, kind, text: field.value }));
    more.replaceChildren(el("label", { for: field.id }, label), field, problem, el("div", { class: "row" }, act, back));
    more.hidden = false;
    update(ask);
  };
  const openEdit = (value) => {
    const field = el("textarea", { id: `edit-${id}`, class: "code", rows: "6", spellcheck: "false", "aria-describedby": problem.id });
    field.value = value;
    const act = el("button", { type: "button", class: "primary", on: { click: () => (members.length > CONFIRM ? openMany(field.value).focus() : approve(field.value)) } }, "Approve these arguments");
    const check = () => {
      problem.textContent = unfit(field.value);
      field.setAttribute("aria-invalid", String(problem.textContent !== ""));
      act.disabled = problem.textContent !== "";
    };
    field.addEventListener("input", check);
    root.classList.add("editing");
    open("edit", members.length > 1 ? "What will run instead, for each of them, as JSON" : "What will run instead, as JSON", edit, field, act);
    check();
    return field;
  };
  const openDeny = (value) => {
    const field = el("textarea", { id: `deny-${id}`, rows: "2", maxlength: "4000", placeholder: "Not today: we still need it." });
    field.value = value;
    const act = el("button", { type: "button", class: "danger", on: { click: () => send({ verdict: "deny", message: field.value }) } }, "Deny");
    open("deny", "What the agent is told, word for word", no, field, act);
    return field;
  };

  /** Many calls are approved together only once their number is typed, wherever they are approved together. */
  const openMany = (args) => {
    const many = String(members.length);
    const field = el("input", { id: `many-${id}`, inputmode: "numeric", autocomplete: "off", size: "6" });
    const act = el("button", { type: "button", class: "primary", on: { click: () => approve(args) } }, `Approve these ${many}`);
    const check = () => (act.disabled = field.value.trim() !== many);
    field.addEventListener("input", check);
    open("many", `Type ${many} to confirm`, yes, field, act);
    check();
    return field;
  };

  const openGrant = (offers) => {
    // An option has no markup: its values stand in quotation marks.
    const field = el("select", { id: `grant-${id}` }, ...offers.map(({ says }, n) => el("option", { value: String(n) }, says.replaceAll(/`([^`]*)`/g, "“$1”"))));
    const rule = el("div", { class: "granted", "aria-live": "polite" });
    const show = () => {
      const offer = offers[field.value];
      const also = offer.also.length > 0 && el("p", { class: "soft" }, "Would also allow: ", offer.also.map((it) => text(it)));
      const never = offer.never.length > 0 && el("p", { class: "soft" }, "Never: ", offer.never.flatMap((it, n) => [n > 0 && "; ", text(it)].filter(Boolean)));
      rule.replaceChildren(...[el("p", { class: "says" }, worded(offer.says)), also, never, el("pre", { class: "code" }, text(offer.rule))].filter(Boolean));
    };
    show();
    const act = el("button", { type: "button", class: "primary", on: { click: () => {
      const { scope, pattern, seconds } = offers[field.value];
      send({ verdict: "approve", grant: { scope, pattern, seconds } });
    } } }, "Approve, and grant this");
    // Another grant is shown in place of the last one: the button has to stand still anew, also where it has not moved.
    field.addEventListener("change", () => {
      show();
      host.unsettle(act.getBoundingClientRect());
    });
    open("grant", "Later calls that are approved without a question", always, field, act);
    field.after(rule);
    return field;
  };

  const unread = el("span", { class: "unread", hidden: true }, "Scroll to the end of the text.");
  const yes = el("button", { type: "button", class: "primary", on: { click: () => (members.length > CONFIRM ? openMany().focus() : approve()) } }, "Approve");
  const edit = el("button", { type: "button", on: { click: async () => {
    const whole = await host.whole(id);
    problem.textContent = whole ? "" : "The arguments cannot be loaded.";
    if (whole && more.hidden) openEdit(readable(whole.args)).focus();
  } } }, "Change …");
  const always = el("button", { type: "button", hidden: true, on: { click: async () => {
    const whole = await host.whole(id);
    const offers = whole?.offers ?? [];
    problem.textContent = offers.length > 0 ? "" : "No grant can be made now.";
    if (offers.length > 0 && more.hidden) openGrant(offers).focus();
  } } }, "Always …");
  const no = el("button", { type: "button", class: "danger", on: { click: () => openDeny("").focus() } }, "Deny …");
  const actions = el("div", { class: "row actions" }, yes, edit, always, no, unread);
  const made = () => [`${ask.agent ? `Agent ${ask.agent} · ` : ""}${ask.wanted_by ? `wanted by ${ask.wanted_by}` : "requester unknown"} · `, el("time", { title: time(ask.parked_at) })];
  const because = host.rows && view.questions[0] && el("span", { class: "because" }, worded(view.questions[0].reason), " · ");
  const meta = el("p", { class: "meta" }, because, made());
  // Where the list is beside the call, or behind it, the call says itself what it is.
  const back = el("button", { type: "button", class: "quiet to-list", on: { click: () => host.close(it) } }, "‹ All calls");
  const head = el("div", { class: "pane-head" }, back, el("span", { class: "who" }, view.tool), el("p", { class: "meta" }, made()));
  const talk = el("div", {});
  const around = el("details", { class: "around", on: { toggle: async () => {
    if (!around.open || talk.firstChild) return;
    const { status, body: told } = await host.api(`/api/runs/${encodeURIComponent(ask.run)}`);
    talk.replaceChildren(status === 200 ? conversation(told.conversation) : el("p", { class: "problem" }, told?.message ?? "The server cannot be reached."));
  } } }, el("summary", {}, "The conversation around it"), talk);
  const foot = el("div", { class: "foot" }, actions, more, problem);
  const inside = el("div", { class: "inside-card", hidden: !unfolded }, head, many, body, votes, rest, foot);
  const root = el("article", { class: host.rows ? "card row-card" : "card", "aria-labelledby": title.id, "data-ask": id, "data-brief": first.brief },
    el("header", {}, choice, title, line, chip), meta, inside);
  /** The buttons, where they stay in sight while the call scrolls. */
  const rows = ends(inside, () => (getComputedStyle(foot).position === "sticky" ? foot : null));
  let isThrough = false;
  /** Sees whether the last rows have been in sight; once they have, it stays so. */
  const look = () => {
    if (!unfolded || isThrough || !rows.look()) return;
    isThrough = true;
    update(ask);
    if (choice.checked) host.chose();
  };

  /** Shows this text of the call. `show` opens what is left out of it. */
  const fill = (now, show) => {
    body.replaceChildren(...call(now, show));
    rest.replaceChildren(details(now, exactly(now, host), around));
  };

  /** The content of a row is made when it is opened. */
  function unfold(open) {
    unfolded = open;
    read ||= open;
    if (open && !body.firstChild) fill(ask, showAll);
    inside.hidden = !open;
    fold.setAttribute("aria-expanded", String(open));
    root.classList.toggle("unfolded", open);
    if (open) {
      host.alone(it);
      update(ask);
      look();
      // Without a layout yet, nothing is in sight.
      requestAnimationFrame(look);
    }
    if (choice.checked) host.chose();
  }

  /** Shows the elided text of the call and of the proposals. */
  const showAll = async (focus = true) => {
    const whole = await host.whole(id);
    problem.textContent = whole ? "" : "The text cannot be loaded.";
    if (!whole) return;
    opened = true;
    for (const member of members) host.opened.add(member.fingerprint);
    proposals = whole.proposals;
    fill(whole);
    isThrough = false;
    look();
    update(ask);
    if (choice.checked) host.chose();
    if (focus) title.focus({ preventScroll: true });
  };

  let before = "";
  function update(now) {
    ask = now;
    const open = new Set([now.id, ...(now.same ?? []).map((other) => other.id)]);
    const left = members.filter((member) => open.has(member.id));
    if (left.length > 0) members = left;
    // Opened text stays open as long as the proposals are the same.
    const about = (list) => JSON.stringify(list.map((proposal) => [proposal.by, proposal.at, proposal.own]));
    const known = proposals && about(proposals) === about(ask.proposals) ? proposals : ask.proposals;
    const said = JSON.stringify([ask.quorum, known, host.me()]);
    if (said !== before) votes.replaceChildren(...agreed({ ...ask, proposals: known }, host, approve, showAll));
    before = said;
    const all = members.length > 1 ? ` all ${members.length}` : "";
    many.hidden = members.length < 2;
    many.firstChild.textContent = `${members.length} equal calls of this run are answered together. `;
    apart.hidden = !more.hidden;
    for (const [button, word, rest] of [[yes, "Approve", ""], [edit, "Change", " …"], [no, "Deny", " …"]]) {
      button.textContent = `${word}${all}${rest}`;
      button.setAttribute("aria-label", `${word}${all} ${view.headline}`);
    }
    const { may_approve: may, voted } = ask.quorum;
    edit.disabled = !may || view.blocked || view.kind !== "approval";
    always.hidden = !ask.grantable || members.length > 1;

    always.setAttribute("aria-label", `Always approve ${view.headline}`);
    no.disabled = !ask.quorum.may_decide;
    const isSeenWhole = isThrough || (!unfolded && first.brief);
    yes.disabled = edit.disabled || voted || !opened || !isSeenWhole;
    always.disabled = yes.disabled;
    unread.hidden = isSeenWhole || !unfolded || edit.disabled || voted || !opened;
    actions.hidden = !more.hidden;
    votes.toggleAttribute("inert", !more.hidden);
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
    for (const at of root.querySelectorAll("time")) at.textContent = ago(host.now() - ask.parked_at);
    look();
  }
  const it = {
    close: () => !more.hidden && close(),
    key, root, title, update, tick, look,
    name: view.tool,
    line: () => view.title,
    /** The reasons to ask, on one line. */
    reasons: () => view.questions.map((it) => `${it.asked_by}: ${it.reason}`).join(" · "),
    changedAt: (of) => (of === ask.id ? ask.changed_at : null),
    choose: (is) => {
      choice.checked = is;
    },
    isChosen: () => choice.checked,
    /** Whether it may be approved as it is, together with others. */
    canApprove: () => !yes.disabled && more.hidden && read && !view.cut,
    /** Whether it only has to be opened first. */
    isUnseen: () => !(opened && read && (isThrough || first.brief)) && more.hidden && !edit.disabled && !ask.quorum.voted && !view.cut,
    /** Whether it is approved only by itself, as not all of a preview is stored. */
    isCut: () => view.cut && !edit.disabled && !ask.quorum.voted,
    /** Opens all of it, in its place. */
    async show() {
      unfold(true);
      if (!opened) await showAll(false);
    },
    /** Presses a button, as a key does: a row is opened first. While a form is open there are no such buttons. */
    press(name) {
      if (!unfolded) return void unfold(true);
      if (!more.hidden) return;
      if (name === "all") return void (opened || showAll());
      const button = { yes, edit, no, always }[name];
      if (!button.hidden) button.click();
    },
    unfold,
    isUnfolded: () => unfolded,
    ask: () => ask,
    members: () => members,
    /** Removes a request that was decided. Returns whether it was the last one. */
    without(gone) {
      members = members.filter((member) => member.id !== gone);
      return members.length === 0;
    },
    isBusy: () => root.hasAttribute("aria-busy"),
    isOpen: () => !more.hidden,
    isUsed: () => !more.hidden || (unfolded && root.contains(document.activeElement)),
  };
  if (unfolded) unfold(true);
  const draft = host.drafts().get(key);
  if (draft?.kind === "deny") openDeny(draft.text);
  if (draft?.kind === "edit") openEdit(draft.text);
  update(first);
  return it;
}

/** JSON with a line for each argument, if no digit of a number is lost by it. */
function readable(json) {
  const exact = JSON.stringify(JSON.parse(json)) === json;
  return exact ? JSON.stringify(JSON.parse(json), null, 2) : json;
}

/** The problem of a text as the arguments of a call; empty if there is none. The tool checks it again when it is sent. */
function unfit(json) {
  try {
    const value = JSON.parse(json);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? "" : "Arguments are an object: { … }";
  } catch (error) {
    return `This is not JSON yet: ${error.message}`;
  }
}
