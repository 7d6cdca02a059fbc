// A change of segments, asked for by hand: what exactly, what it would do, and that it be done.

import { ask } from "./api.mjs";
import { announce, el } from "./dom.mjs";
import { ids } from "./format.mjs";
import { topicPath } from "./places.mjs";

// Routes of the gateway that the console may write to.
export const CHANGES = ["split", "merge", "rebucket"];

// Open the dialog.
//
// kind: of the change, as it is shown. segments: ids it is about. further: its path behind that of the topic.
// fields: numbers that are to be said, { name, label, value, least, most }.
// asked: called after the change itself was asked for.
export function askForChange({ topic, connection, kind, segments, further, fields = [], asked }) {
  const what = `${kind} of ${segments.length === 1 ? "segment" : "segments"} ${ids(segments)}`;
  const inputs = fields.map(({ name, value, least, most }) =>
    el("input", { type: "number", id: `field-${name}`, name, value, min: least, max: most, required: true }),
  );
  const lines = fields.map(({ name, label }, index) =>
    el("p", {}, el("label", { for: `field-${name}`, text: label }), inputs[index]),
  );
  const output = el("div", { class: "output", role: "status" });
  const dry = el("button", { type: "button", text: "Dry run", on: { click: () => send(true) } });
  const now = el("button", { type: "submit", class: "main", text: `${kind} now` });
  const close = el("button", { type: "button", text: "Close", on: { click: () => dialog.close() } });

  async function send(dryRun) {
    dry.disabled = now.disabled = true;
    output.replaceChildren(el("p", { text: dryRun ? "Asking…" : "Under way…" }));
    const said = Object.fromEntries(inputs.map((input) => [input.name, input.value]));
    const query = dryRun ? { ...said, dryRun: true } : said;
    try {
      const { status, value } = await ask(topicPath(topic, connection, further, query), { method: "POST" });
      const answer = status === 204 ? "Done." : (value?.reason ?? value?.message ?? "Asked for.");
      const plan = value?.plan ? el("pre", { tabindex: "0", text: JSON.stringify(value.plan, null, 1) }) : "";
      output.replaceChildren(el("p", { text: answer }), plan);
      announce(`${what}: ${answer}`);
      if (!dryRun) {
        asked();
      }
    } catch (error) {
      output.replaceChildren(el("p", { class: "wrong", text: error.message }));
    }
    dry.disabled = now.disabled = false;
  }

  const submit = (event) => {
    event.preventDefault();
    void send(false);
  };
  const dialog = el(
    "dialog",
    { "aria-labelledby": "asked", on: { close: () => dialog.remove() } },
    el("h2", { id: "asked", text: what }),
    el("form", { on: { submit } }, lines, output, el("p", { class: "actions" }, dry, now, close)),
  );
  document.body.append(dialog);
  dialog.showModal();
}
