// The page: signs in, lists, adds and removes notes, and follows changes of other windows.
const find = (id) => document.getElementById(id);
const list = find("notes");

async function call(path, options = {}) {
  const answer = await fetch(path, options);
  if (answer.status === 401) return showWelcome();
  if (!answer.ok) throw new Error((await answer.json()).detail);
  return answer.status === 204 ? undefined : answer.json();
}

function sendJson(path, body) {
  const headers = { "Content-Type": "application/json" };
  return call(path, { method: "POST", headers, body: JSON.stringify(body) });
}

function showWelcome() {
  for (const id of ["add", "out", "live", "empty"]) find(id).hidden = true;
  find("welcome").hidden = false;
  list.replaceChildren();
  return undefined;
}

function createNote({ id, text, file, remindAt }) {
  const item = document.createElement("li");
  item.dataset.id = id;
  const words = document.createElement("p");
  words.textContent = text;
  item.append(words);
  const facts = document.createElement("div");
  facts.className = "facts";
  if (file !== null) {
    const link = document.createElement("a");
    link.href = `/api/notes/${id}/file`;
    link.textContent = file;
    facts.append(link);
  }
  if (remindAt !== null) {
    const time = document.createElement("time");
    time.dateTime = new Date(remindAt).toISOString();
    time.textContent = `reminder ${new Date(remindAt).toLocaleString()}`;
    facts.append(time);
  }
  const remove = document.createElement("button");
  remove.className = "quiet";
  remove.textContent = "Delete";
  remove.setAttribute("aria-label", `Delete ${text}`);
  remove.onclick = () => call(`/api/notes/${id}`, { method: "DELETE" }).catch(showProblem);
  facts.append(remove);
  item.append(facts);
  return item;
}

function apply({ added, removed }) {
  const id = String(added?.id ?? removed);
  const known = list.querySelector(`[data-id="${CSS.escape(id)}"]`);
  if (removed !== undefined) known?.remove();
  else if (known === null) list.prepend(createNote(added));
  find("empty").hidden = list.children.length > 0;
}

function showProblem(error) {
  find("problem").textContent = error.message;
  find("problem").hidden = false;
}

async function upload(file) {
  if (file === undefined) return undefined;
  const { key, url } = await sendJson("/api/uploads", {});
  const stored = await fetch(url, { method: "PUT", body: file });
  if (!stored.ok) throw new Error("The file could not be stored.");
  return { key, name: file.name };
}

find("add").onsubmit = async (event) => {
  event.preventDefault();
  const form = event.target;
  const button = form.querySelector("button");
  button.disabled = true;
  find("problem").hidden = true;
  try {
    const file = await upload(form.file.files[0]);
    const remindAt = form.remind.value === "" ? null : new Date(form.remind.value).getTime();
    const note = await sendJson("/api/notes", { text: form.text.value, file, remindAt });
    if (note !== undefined) apply({ added: note });
    form.reset();
  } catch (error) {
    showProblem(error);
  }
  button.disabled = false;
};

async function refresh() {
  const notes = await call("/api/notes");
  if (notes === undefined) return;
  list.replaceChildren(...notes.map(createNote));
  find("empty").hidden = notes.length > 0;
}

function follow() {
  const changes = new EventSource("/api/events");
  // Changes while the connection was lost are in the list.
  changes.onopen = () => {
    find("live").hidden = false;
    refresh().catch(showProblem);
  };
  changes.onmessage = ({ data }) => apply(JSON.parse(data));
  changes.onerror = () => (find("live").hidden = true);
}

const user = await call("/api/me");
if (user !== undefined) {
  find("user").textContent = user.name;
  for (const id of ["add", "out"]) find(id).hidden = false;
  follow();
}
