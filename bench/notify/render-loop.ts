// Renders the template of the `render` case in a loop, run as a child: `render-loop.ts ours|liquid SECONDS`. Prints a JSON
// summary.
import { Liquid } from "liquidjs";
import { JobRenderer } from "../../services/notify/src/template/render-job.ts";

/** The JSON line that this program prints. */
export interface LoopSummary {
  count: number;
  seconds: number;
  cpuMs: number;
}

/** A template with a loop of 20 rows. */
export const TEMPLATE = {
  subject: "Order {{ order.id }}",
  html: "<h1>Thank you, {{ user.name }}</h1><table>{% for item in order.items %}<tr><td>{{ item.name }}</td><td>{{ item.count }}</td><td>{{ item.price }}</td></tr>{% endfor %}</table>",
  text: "Thank you, {{ user.name }}, for order {{ order.id }}.",
};

/** Its variables. */
export const VARIABLES = {
  user: { name: "Ada Lovelace" },
  order: {
    id: 17,
    items: Array.from({ length: 20 }, (_, at) => ({
      name: `Tea & Milk ${at}`,
      count: at + 1,
      price: 1.5 * at,
    })),
  },
};

if (import.meta.main) {
  const [program, seconds = "3"] = process.argv.slice(2);
  const render = program === "ours" ? prepareOurs() : prepareLiquid();
  console.log(JSON.stringify(run(render, Number(seconds))));
}

// As the service renders on its event loop.
function prepareOurs(): () => string | undefined {
  const renderer = new JobRenderer();
  const toSource = (id: string, source: string) => ({ id, source, partials: new Map() });
  const sources = {
    subject: toSource("order@1.subject", TEMPLATE.subject),
    html: toSource("order@1.html", TEMPLATE.html),
    text: toSource("order@1.text", TEMPLATE.text),
  };
  const limits = { ms: 1_000, plainTextCharacters: 32_768 };
  return () => renderer.render({ sources, variables: VARIABLES }, limits).parts.html;
}

function prepareLiquid(): () => string {
  const html = new Liquid({ outputEscape: "escape" });
  const text = new Liquid();
  const subject = text.parse(TEMPLATE.subject);
  const [markup, plain] = [html.parse(TEMPLATE.html), text.parse(TEMPLATE.text)];
  return () => {
    text.renderSync(subject, VARIABLES);
    text.renderSync(plain, VARIABLES);
    return String(html.renderSync(markup, VARIABLES));
  };
}

function run(render: () => string | undefined, seconds: number): LoopSummary {
  for (let count = 0; count < 2_000; count += 1) render();
  const startedAt = performance.now();
  const before = process.cpuUsage();
  let count = 0;
  for (; performance.now() - startedAt < seconds * 1_000; count += 1) {
    if (render()?.includes("<td>20</td>") !== true) throw new Error("rendered wrongly");
  }
  const { user, system } = process.cpuUsage(before);
  return {
    count,
    seconds: (performance.now() - startedAt) / 1_000,
    cpuMs: (user + system) / 1_000,
  };
}
