// Starts a run, and goes to the inbox.

const $ = (id) => document.getElementById(id);

$("prompt").value = await (await fetch("/demo.txt")).text();
$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const headers = { "Content-Type": "application/json" };
  const reply = await fetch("/api/runs", { method: "POST", headers, body: JSON.stringify({ prompt: $("prompt").value }) }).catch(() => null);
  if (reply?.ok) location.assign("/");
  else $("problem").textContent = (await reply?.json().catch(() => null))?.message ?? "The server cannot be reached.";
});
// Without this script the browser would send the form itself, which the policy of the page refuses.
$("go").disabled = false;
