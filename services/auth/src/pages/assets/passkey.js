// The only script of the pages: asks the browser for a passkey and puts what it answers into the form.

const toBytes = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) =>
    char.charCodeAt(0),
  );
const toText = (buffer) =>
  btoa(Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
const listIds = (items) => (items ?? []).map((item) => ({ ...item, id: toBytes(item.id) }));

/** Options as the service sends them (JSON) → as `navigator.credentials` takes them. */
const readOptions = (options) => ({
  ...options,
  challenge: toBytes(options.challenge),
  ...(options.user ? { user: { ...options.user, id: toBytes(options.user.id) } } : {}),
  ...(options.allowCredentials ? { allowCredentials: listIds(options.allowCredentials) } : {}),
  ...(options.excludeCredentials
    ? { excludeCredentials: listIds(options.excludeCredentials) }
    : {}),
});

/** A credential → as the service takes it (JSON). */
const writeCredential = ({ id, rawId, type, authenticatorAttachment, response }) => ({
  id,
  rawId: toText(rawId),
  type,
  authenticatorAttachment: authenticatorAttachment ?? undefined,
  clientExtensionResults: {},
  response: {
    clientDataJSON: toText(response.clientDataJSON),
    ...(response.attestationObject
      ? {
          attestationObject: toText(response.attestationObject),
          transports: response.getTransports?.() ?? [],
        }
      : {
          authenticatorData: toText(response.authenticatorData),
          signature: toText(response.signature),
          userHandle: response.userHandle ? toText(response.userHandle) : undefined,
        }),
  },
});

const run = async (form) => {
  const answer = await fetch(form.dataset.options, {
    method: "POST",
    body: new URLSearchParams({ csrf: form.elements.csrf.value }),
    redirect: "error",
  });
  if (!answer.ok) throw new Error(`options: ${answer.status}`);
  const publicKey = readOptions((await answer.json()).publicKey);
  const credential =
    form.dataset.passkey === "create"
      ? await navigator.credentials.create({ publicKey })
      : await navigator.credentials.get({ publicKey });
  form.elements.credential.value = JSON.stringify(writeCredential(credential));
  form.submit();
};

for (const form of document.querySelectorAll("form[data-passkey]")) {
  const button = form.querySelector("button");
  const failure = form.querySelector("[data-failure]");
  if (!("credentials" in navigator)) continue;
  button.disabled = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    button.disabled = true;
    failure.textContent = "";
    run(form).catch(() => {
      failure.textContent = failure.dataset.failure;
      button.disabled = false;
    });
  });
}
