// Asks the browser for a passkey and puts what it answers into the form.

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

/** Challenges are valid for five minutes. */
const RENEW_MS = 240_000;

const loadOptions = async (form) => {
  const answer = await fetch(form.dataset.options, {
    method: "POST",
    body: new URLSearchParams({ csrf: form.elements.csrf.value }),
    redirect: "error",
  });
  if (!answer.ok) throw new Error(`options: ${answer.status}`);
  return readOptions((await answer.json()).publicKey);
};

const sendCredential = (form, credential) => {
  form.elements.credential.value = JSON.stringify(writeCredential(credential));
  form.submit();
};

const usePasskey = async (form) => {
  const publicKey = await loadOptions(form);
  const credential =
    form.dataset.passkey === "create"
      ? await navigator.credentials.create({ publicKey })
      : await navigator.credentials.get({ publicKey });
  sendCredential(form, credential);
};

const untilVisible = async () => {
  while (document.hidden) {
    await new Promise((resolve) =>
      document.addEventListener("visibilitychange", resolve, { once: true }),
    );
  }
};

/** Lets the browser offer passkeys in the field for the username, until the button is pressed (`stop`). */
const fillIn = async (form, stop) => {
  const { PublicKeyCredential: passkeys } = globalThis;
  if (!(await passkeys?.isConditionalMediationAvailable?.()) || !AbortSignal.any) return;
  while (!stop.aborted) {
    await untilVisible();
    const renewal = AbortSignal.timeout(RENEW_MS);
    try {
      const credential = await navigator.credentials.get({
        publicKey: await loadOptions(form),
        mediation: "conditional",
        signal: AbortSignal.any([stop, renewal]),
      });
      if (!stop.aborted) sendCredential(form, credential);
      return;
    } catch {
      // The button still works.
      if (!renewal.aborted) return;
    }
  }
};

for (const form of document.querySelectorAll("form[data-passkey]")) {
  const button = form.querySelector("button");
  const failure = form.querySelector("[data-failure]");
  if (!("credentials" in navigator)) continue;
  button.disabled = false;
  const stop = new AbortController();
  if ("fillIn" in form.dataset) void fillIn(form, stop.signal);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // Only one request can wait for the user.
    stop.abort();
    button.disabled = true;
    failure.textContent = "";
    usePasskey(form).catch(() => {
      failure.textContent = failure.dataset.failure;
      button.disabled = false;
    });
  });
}
