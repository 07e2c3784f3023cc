// Forms of the security page: passkeys are added, renamed, removed; second factors set up and removed.
import { PlatformError } from "@platform/kernel/errors";
import type { RegistrationResponseJSON } from "@simplewebauthn/server";
import type { SignedIn } from "../../sign-in/sign-in.ts";
import type { SecurityEvent } from "../../sign-in/security-notices.ts";
import { registration } from "../../factor/credential.ts";
import { nameDevice } from "../../session/device.ts";
import { readEmail } from "../../user/username.ts";
import { showBackupCodes, showFirstCode, showTotpSetup } from "../enrolment.ts";
import { admit, attempt, readCredential, type PageParts } from "../page-parts.ts";
import type { Problem } from "../problem.ts";
import type { Answer, Form, PageRoute, SignedInVisit } from "../route.ts";
import { redirectToSecurity, SECURITY_PATH, showSecurity } from "./security.ts";

const NAME_CHARS_MAX = 64;
const CONFIRM_PATH = "/account/factors/confirm";
const PHONE_NUMBER = /^\+[1-9]\d{6,14}$/;

/** The routes. */
export function createCredentialRoutes(parts: PageParts): PageRoute[] {
  const post = (
    path: string,
    handle: (parts: PageParts, visit: SignedInVisit, form: Form) => Promise<Answer>,
  ): PageRoute => ({
    method: "POST",
    path: `/account/${path}`,
    access: "strong",
    handle: (visit, form) => handle(parts, visit, form),
  });
  return [
    post("passkeys/options", async ({ passkeys }, { visitor }) => ({
      kind: "json",
      body: await passkeys.beginRegistration(visitor.account, null, true),
    })),
    post("passkeys", addPasskey),
    post("passkeys/rename", renamePasskey),
    post("passkeys/remove", removePasskey),
    post("factors/totp", setUpTotp),
    post("factors/sent", setUpSent),
    post("factors/confirm", confirmFactor),
    post("factors/remove", removeFactor),
    post("factors/backup-codes", renewBackupCodes),
  ];
}

async function addPasskey(parts: PageParts, visit: SignedInVisit, form: Form): Promise<Answer> {
  const { account } = visit.visitor;
  const { problems } = visit.language.messages;
  const read = registration.safeParse(readCredential(form.get("credential")));
  if (!read.success) {
    return showSecurity(parts, visit, { status: 422, text: problems.wrongPasskey, fields: {} });
  }
  const response = read.data as unknown as RegistrationResponseJSON;
  const added = await attempt(
    visit,
    async () => {
      const { ticket, amr, keep } = await parts.passkeys.finishRegistration(response);
      // A challenge is for the one who asked for it.
      if (ticket.userId !== account.id) throw new PlatformError("forbidden");
      return { amr, ...(await keep(account.id, nameDevice(visit.origin.userAgent))) };
    },
    { unauthorized: problems.wrongPasskey, bad_request: problems.wrongPasskey },
  );
  if ("problem" in added) return showSecurity(parts, visit, added.problem);
  await record(parts, visit, "passkey.register", `passkey:${added.value.id}`);
  const elevated = await complete(parts, visit, added.value.amr);
  return admit(parts, visit, elevated, `${SECURITY_PATH}?done=passkey-added`);
}

async function renamePasskey(parts: PageParts, visit: SignedInVisit, form: Form): Promise<Answer> {
  const name = (form.get("name") ?? "").trim().slice(0, NAME_CHARS_MAX);
  const { problems, fields } = visit.language.messages;
  if (name === "") {
    const text = problems.required(fields.deviceName);
    return showSecurity(parts, visit, { status: 422, text, fields: {} });
  }
  const { id } = visit.visitor.account;
  const item = await parts.passkeys.rename(id, form.get("id") ?? "", name);
  if (item === undefined) return showSecurity(parts, visit, sayGone(visit));
  return redirectToSecurity("passkey-renamed");
}

async function removePasskey(parts: PageParts, visit: SignedInVisit, form: Form): Promise<Answer> {
  const id = form.get("id") ?? "";
  const { lastSignIn } = visit.language.messages.problems;
  const removed = await attempt(visit, () => parts.passkeys.remove(visit.visitor.account, id), {
    conflict: lastSignIn,
  });
  if ("problem" in removed) return showSecurity(parts, visit, removed.problem);
  if (!removed.value) return showSecurity(parts, visit, sayGone(visit));
  await record(parts, visit, "passkey.remove", `passkey:${id}`);
  return redirectToSecurity("passkey-removed");
}

async function setUpTotp(parts: PageParts, visit: SignedInVisit): Promise<Answer> {
  const { types } = visit.language.messages.security;
  const setup = await attempt(visit, () =>
    parts.factors.setUpTotp(visit.visitor.account, types.totp),
  );
  if ("problem" in setup) return showSecurity(parts, visit, setup.problem);
  return showTotpSetup(parts, visit, setup.value, FIRST_CODE);
}

async function setUpSent(parts: PageParts, visit: SignedInVisit, form: Form): Promise<Answer> {
  const { messages } = visit.language;
  const type = form.get("type") === "sms" ? "sms" : "email";
  const entered = form.get("to") ?? "";
  const number = entered.replaceAll(/[\s()/-]/g, "");
  const to = type === "email" ? readEmail(entered) : PHONE_NUMBER.test(number) ? number : undefined;
  if (to === undefined) {
    const text = type === "email" ? messages.problems.email : messages.problems.phone;
    return showSecurity(parts, visit, { status: 422, text, fields: {} });
  }
  const { account } = visit.visitor;
  const setup = await attempt(visit, () =>
    parts.factors.setUpSent(account, type, to, messages.security.types[type]),
  );
  if ("problem" in setup) return showSecurity(parts, visit, setup.problem);
  return showFirstCode(parts, visit, setup.value.id, messages.factor.sent(to), FIRST_CODE);
}

async function confirmFactor(parts: PageParts, visit: SignedInVisit, form: Form): Promise<Answer> {
  const { account } = visit.visitor;
  const { problems, enrol } = visit.language.messages;
  const id = form.get("factor_id") ?? "";
  const isFirst = (await parts.factors.list(account.id)).length === 0;
  const confirmed = await attempt(
    visit,
    () => parts.factors.confirm(account.id, id, (form.get("code") ?? "").trim()),
    { unauthorized: problems.wrongCode },
  );
  if ("problem" in confirmed) {
    if (confirmed.problem.status === 404) return showSecurity(parts, visit, confirmed.problem);
    return showFirstCode(parts, visit, id, enrol.enterCode, FIRST_CODE, confirmed.problem);
  }
  const { kind, amr } = confirmed.value;
  await record(parts, visit, "mfa.enrol", `factor:${id}`, { kind });
  // Whoever has just shown a code need not show the next one to an application that waits for it.
  const elevated = await complete(parts, visit, amr);
  const done = `${SECURITY_PATH}?done=factor-added`;
  const answer = await admit(parts, visit, elevated, done);
  if (!isFirst) return answer;
  return showBackupCodes(parts, visit, await parts.factors.renewBackupCodes(account.id), done);
}

async function removeFactor(parts: PageParts, visit: SignedInVisit, form: Form): Promise<Answer> {
  const id = form.get("id") ?? "";
  if (!(await parts.factors.remove(visit.visitor.account.id, id))) {
    return showSecurity(parts, visit, sayGone(visit));
  }
  await record(parts, visit, "mfa.remove", `factor:${id}`);
  return redirectToSecurity("factor-removed");
}

async function renewBackupCodes(parts: PageParts, visit: SignedInVisit): Promise<Answer> {
  const { account } = visit.visitor;
  const made = await attempt(visit, () => parts.factors.renewBackupCodes(account.id));
  if ("problem" in made) return showSecurity(parts, visit, made.problem);
  await record(parts, visit, "mfa.backup_codes", `user:${account.id}`);
  return showBackupCodes(parts, visit, made.value, SECURITY_PATH);
}

// Sessions that a password alone has opened end, but this one, in which the factor has been shown.
function complete(
  { signIn }: PageParts,
  { visitor: { account, session } }: SignedInVisit,
  amr: readonly string[],
): Promise<SignedIn> {
  return signIn.completeEnrolment(account, session.id, amr, { mint: false });
}

const FIRST_CODE = { action: CONFIRM_PATH, continue: undefined };

function sayGone(visit: SignedInVisit): Problem {
  return { status: 404, text: visit.language.messages.problems.gone, fields: {} };
}

// What was done is on record, and the account's owner is told by mail.
async function record(
  { audit, notices }: PageParts,
  visit: SignedInVisit,
  action: SecurityEvent,
  target: string,
  detail?: Record<string, unknown>,
): Promise<void> {
  const { account } = visit.visitor;
  await audit.record({
    action,
    actor: `user:${account.id}`,
    target,
    ip: visit.origin.ip,
    ...(detail === undefined ? {} : { detail }),
  });
  notices.tell(account, action);
}
