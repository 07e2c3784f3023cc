// The few pages of the core itself: signing out, entering a device's code, errors. They work without JavaScript.

/** The pages; each returns a whole HTML document. `form` is the core's form, to be placed as it is. */
export interface OAuthPages {
  /** Asks whether to sign out. `form` has the id `op.logoutForm`; a button with `name=logout value=yes` confirms. */
  signOut(form: string): string;
  /** After signing out. */
  signedOut(): string;
  /** Asks for a device's code; `problem` says what was wrong with the last one. `form` has the id `op.deviceInputForm`. */
  deviceCode(form: string, problem: string | undefined): string;
  /** Asks whether the shown code is on the device. `form` has the id `op.deviceConfirmForm`; `name=abort` denies. */
  confirmDevice(form: string, client: string, code: string): string;
  /** The device is signed in. */
  deviceDone(client: string): string;
  /** An error that cannot be sent back to the client. */
  error(title: string, detail: string): string;
}

/** Plain pages, for a service that has none of its own. */
export const plainPages: OAuthPages = {
  signOut: (form) =>
    layOut(
      "Sign out",
      `<p>Do you want to sign out?</p>${form}
      <button type="submit" form="op.logoutForm" name="logout" value="yes">Sign out</button>
      <button type="submit" form="op.logoutForm">Stay signed in</button>`,
    ),
  signedOut: () => layOut("Signed out", "<p>You are signed out.</p>"),
  deviceCode: (form, problem) =>
    layOut(
      "Connect a device",
      `${problem === undefined ? "" : `<p role="alert">${escapeHtml(problem)}</p>`}
      <p>Enter the code that your device shows.</p>${form}
      <button type="submit" form="op.deviceInputForm">Continue</button>`,
    ),
  confirmDevice: (form, client, code) =>
    layOut(
      "Connect a device",
      `<p>${escapeHtml(client)} shows this code:</p><p><strong>${escapeHtml(code)}</strong></p>
      <p>If the device in front of you does not show it, somebody else may be trying to use your account.</p>${form}
      <button type="submit" form="op.deviceConfirmForm">Continue</button>
      <button type="submit" form="op.deviceConfirmForm" name="abort" value="yes">Cancel</button>`,
    ),
  deviceDone: (client) =>
    layOut(
      "Device connected",
      `<p>${escapeHtml(client)} is connected. You can close this page.</p>`,
    ),
  error: (title, detail) => layOut(title, `<p role="alert">${escapeHtml(detail)}</p>`),
};

function layOut(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title></head>
<body><main><h1>${escapeHtml(title)}</h1>${content}</main></body>
</html>
`;
}

/** Text as HTML. */
function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
