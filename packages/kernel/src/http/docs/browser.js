// Runs in the browser: shows the OpenAPI document and sends requests on demand. Text from the document or a response is
// inserted as text, never as markup.
const root = document.getElementById("api");
const token = make("input", { type: "password", autocomplete: "off", placeholder: "Bearer token" });

await load();

// A document that requires a token is read when the user has given it.
async function load() {
  try {
    const headers = token.value ? { Authorization: `Bearer ${token.value}` } : {};
    const answer = await fetch("/api/docs/openapi.json", { headers });
    root.replaceChildren();
    if (answer.status === 401 || answer.status === 403) ask(answer.status);
    else if (answer.ok) show(await answer.json());
    else throw new Error(`openapi.json: ${answer.status}`);
  } catch (error) {
    root.append(make("pre", {}, String(error)));
  }
}

function ask(status) {
  const form = make("form", {});
  const refused = token.value ? ` It was refused (${status}).` : "";
  form.append(
    make("p", {}, `The documentation requires a bearer token.${refused}`),
    make("label", {}, make("span", {}, "Authorization"), token),
    make("button", { type: "submit" }, "Show"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void load();
  });
  root.append(form);
  token.focus();
}

function show(api) {
  root.append(make("h1", {}, `${api.info.title} ${api.info.version}`));
  if (api.info.description) root.append(make("p", {}, api.info.description));
  root.append(make("label", {}, make("span", {}, "Authorization"), token));
  const groups = new Map();
  for (const [path, operations] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const group = operation.tags?.[0] ?? "API";
      groups.set(group, [...(groups.get(group) ?? []), { method, path, operation }]);
    }
  }
  for (const [name, entries] of groups) {
    root.append(make("h2", {}, name), ...entries.map((entry) => showOperation(api, entry)));
  }
}

function showOperation(api, { method, path, operation }) {
  const inside = make("div", { className: "inside" });
  const details = make(
    "details",
    {},
    make(
      "summary",
      {},
      make("b", {}, method.toUpperCase()),
      make("code", {}, path),
      operation.summary,
    ),
    inside,
  );
  details.addEventListener("toggle", () => fill(api, inside, method, path, operation), {
    once: true,
  });
  return details;
}

function fill(api, inside, method, path, operation) {
  if (operation.description) inside.append(make("p", {}, operation.description));
  const fields = (operation.parameters ?? []).map((parameter) => {
    const input = make("input", {
      placeholder: parameter.description ?? parameter.schema?.type ?? "",
    });
    const mark = parameter.required ? " *" : "";
    inside.append(make("label", {}, make("span", {}, `${parameter.name}${mark}`), input));
    return { parameter, input };
  });
  const media = Object.entries(operation.requestBody?.content ?? {})[0];
  const body = media && make("textarea", { spellcheck: false });
  if (body) {
    if (media[1].schema) body.value = JSON.stringify(example(api, media[1].schema, 0), null, 2);
    inside.append(body);
  }
  const button = make("button", { type: "button" }, "Send");
  const output = make("pre", { hidden: true, tabIndex: 0, ariaLabel: "Response", role: "region" });
  button.addEventListener("click", () => send(method, path, fields, media?.[0], body, output));
  const answers = Object.entries(operation.responses ?? {});
  inside.append(
    button,
    output,
    make("p", {}, "Answers"),
    ...answers.map(([status, answer]) => {
      const schema = Object.values(answer.content ?? {})[0]?.schema;
      const isOwn = schema && !schema.$ref?.endsWith("/Problem");
      const shape = isOwn ? `\n${JSON.stringify(example(api, schema, 0), null, 2)}` : "";
      return make("pre", {}, `${status} ${answer.description}${shape}`);
    }),
  );
}

async function send(method, path, fields, mediaType, body, output) {
  const url = new URL(location.origin);
  url.pathname = path.replace(/\{(\w+)\}/g, (_match, name) => {
    const field = fields.find(
      ({ parameter }) => parameter.in === "path" && parameter.name === name,
    );
    return encodeURIComponent(field?.input.value ?? "");
  });
  for (const { parameter, input } of fields) {
    if (parameter.in === "query" && input.value !== "") {
      url.searchParams.set(parameter.name, input.value);
    }
  }
  const headers = {};
  if (token.value) headers.Authorization = `Bearer ${token.value}`;
  if (body && body.value !== "") headers["Content-Type"] = mediaType;
  output.hidden = false;
  output.textContent = "…";
  try {
    const sent = { method: method.toUpperCase(), headers };
    if (body && body.value !== "") sent.body = body.value;
    const answer = await fetch(url, sent);
    const text = await answer.text();
    const lines = [...answer.headers].map(([name, value]) => `${name}: ${value}`);
    output.textContent = `${answer.status} ${answer.statusText}\n${lines.join("\n")}\n\n${pretty(text)}`;
  } catch (error) {
    output.textContent = String(error);
  }
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function example(api, schema, depth) {
  if (depth > 6) return null;
  if (schema.$ref) {
    return example(api, api.components.schemas[schema.$ref.split("/").pop()] ?? {}, depth + 1);
  }
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const choice = (schema.anyOf ?? schema.oneOf ?? schema.allOf)?.[0];
  if (choice) return example(api, choice, depth + 1);
  switch (schema.type) {
    case "object":
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, inner]) => [
          name,
          example(api, inner, depth + 1),
        ]),
      );
    case "array":
      return schema.items ? [example(api, schema.items, depth + 1)] : [];
    case "integer":
    case "number":
      return schema.minimum > 0 ? schema.minimum : 0;
    case "boolean":
      return false;
    case "string":
      return "";
    default:
      return null;
  }
}

function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}
