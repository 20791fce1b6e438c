// Logs in, and goes to the inbox.

const $ = (id) => document.getElementById(id);

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const headers = { "Content-Type": "application/json" };
  const reply = await fetch("/api/login", { method: "POST", headers, body: JSON.stringify({ name: $("name").value.trim() }) }).catch(() => null);
  if (reply?.ok) location.assign("/");
  else $("problem").textContent = (await reply?.json().catch(() => null))?.message ?? "The server cannot be reached.";
});
// Without this script the browser would send the form itself, which the policy of the page refuses.
$("go").disabled = false;
