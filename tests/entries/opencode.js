// Written by `countersign hook install opencode`. Changes are lost with the next installation.
import { spawn } from "node:child_process"

const [PROGRAM, ...OPTIONS] = ["PROGRAM","hook","opencode","--home","HOME","--config-dir","HOME/.config/countersign","--state-dir","HOME/.local/state/countersign","--principal","ann","--rules","HOME/.config/countersign/rules.toml","--limit","300"]
const LIMIT = 300000

const run = (payload) => new Promise((resolve) => {
  const child = spawn(PROGRAM, OPTIONS, { stdio: ["pipe", "pipe", "pipe"] })
  let out = "", err = "", late = false
  const timer = setTimeout(() => { late = true; child.kill("SIGKILL") }, LIMIT)
  child.stdout.on("data", (data) => (out += data))
  child.stderr.on("data", (data) => (err += data))
  child.on("error", (error) => { clearTimeout(timer); resolve({ err: String(error) }) })
  child.on("close", (code) => { clearTimeout(timer); resolve({ code, out, err, late }) })
  child.stdin.on("error", () => {})
  child.stdin.end(JSON.stringify(payload))
})

export const Countersign = async ({ directory }) => {
  const running = new Map()
  const about = (input, event, args) => ({
    hook_event_name: event, session_id: input.sessionID, call_id: input.callID, tool: input.tool, args, cwd: directory,
  })
  return {
    "tool.execute.before": async (input, output) => {
      const { code, out, err, late } = await run(about(input, "tool.execute.before", output.args))
      if (late) throw new Error("countersign did not answer in time")
      if (code !== 0) throw new Error((err || "").trim() || "countersign has failed")
      let answer
      try { answer = JSON.parse(out) } catch { throw new Error("countersign gave no answer") }
      if (answer?.decision !== "allow") throw new Error(answer?.reason || "denied by countersign")
      if (answer.args) {
        for (const name of Object.keys(output.args)) delete output.args[name]
        Object.assign(output.args, answer.args)
      }
      running.set(input.callID, structuredClone(output.args))
    },
    "tool.execute.after": async (input) => {
      // What ran, where opencode says it: another plugin may have changed it since.
      const args = input.args ?? running.get(input.callID)
      running.delete(input.callID)
      if (!args) return
      const { err } = await run(about(input, "tool.execute.after", args))
      if (err) console.error(err.trim())
    },
    event: async ({ event }) => {
      const session = event?.properties?.info?.id
      if (event?.type === "session.deleted" && session)
        await run({ hook_event_name: "session.end", session_id: session, cwd: directory })
    },
  }
}
