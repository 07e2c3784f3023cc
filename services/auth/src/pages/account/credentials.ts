// Forms of the security page for passkeys and second factors.
import { PlatformError } from "@platform/kernel/errors";
import type { RegistrationResponseJSON } from "@simplewebauthn/server";
import { registration } from "../../factor/credential.ts";
import { requireHonestName } from "../../factor/passkeys.ts";
import { nameDevice } from "../../session/device.ts";
import type { SecurityEvent } from "../../sign-in/security-notices.ts";
import type { SignedIn } from "../../sign-in/sign-in.ts";
import { readEmail } from "../../user/username.ts";
import { showBackupCodes, showFirstCode, showTotpSetup } from "../enrolment.ts";
import { admit, attempt, readCredential, type PageServices } from "../page-services.ts";
import type { Problem } from "../problem.ts";
import type { PageResponse, Form, PageRoute, SignedInRequest } from "../route.ts";
import { redirectToSecurity, SECURITY_PATH, showSecurity } from "./security.ts";

const NAME_CHARS_MAX = 64;
const CONFIRM_PATH = "/account/factors/confirm";
const PHONE_NUMBER = /^\+[1-9]\d{6,14}$/;

export function createCredentialRoutes(services: PageServices): PageRoute[] {
  const post = (
    path: string,
    handle: (services: PageServices, request: SignedInRequest, form: Form) => Promise<PageResponse>,
  ): PageRoute => ({
    method: "POST",
    path: `/account/${path}`,
    access: "strong",
    handle: (request, form) => handle(services, request, form),
  });
  return [
    post("passkeys/options", async ({ passkeys }, { user }) => ({
      kind: "json",
      body: await passkeys.beginRegistration(user.account, null, true),
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

async function addPasskey(
  services: PageServices,
  request: SignedInRequest,
  form: Form,
): Promise<PageResponse> {
  const { account } = request.user;
  const { problems } = request.language.messages;
  const name = readName(form);
  const read = registration.safeParse(readCredential(form.get("credential")));
  if (!read.success) {
    return showSecurity(services, request, {
      status: 422,
      text: problems.wrongPasskey,
      fields: {},
    });
  }
  const response = read.data as unknown as RegistrationResponseJSON;
  const added = await attempt(
    request,
    async () => {
      requireHonestName(name);
      const { issued, amr, authenticator, keep } =
        await services.passkeys.finishRegistration(response);
      // The challenge must have been issued to this user.
      if (issued.userId !== account.id) throw new PlatformError("forbidden");
      const suggested = authenticator ?? nameDevice(request.origin.userAgent);
      return { amr, ...(await keep(account.id, name === "" ? suggested : name)) };
    },
    {
      unauthorized: problems.wrongPasskey,
      bad_request: problems.wrongPasskey,
      validation_failed: problems.deceptiveName,
    },
  );
  if ("problem" in added) return showSecurity(services, request, added.problem);
  await record(services, request, "passkey.register", `passkey:${added.value.id}`);
  const elevated = await complete(services, request, added.value.amr);
  return admit(services, request, elevated, `${SECURITY_PATH}?done=passkey-added`);
}

async function renamePasskey(
  services: PageServices,
  request: SignedInRequest,
  form: Form,
): Promise<PageResponse> {
  const name = readName(form);
  const { problems, fields } = request.language.messages;
  if (name === "") {
    const text = problems.required(fields.deviceName);
    return showSecurity(services, request, { status: 422, text, fields: {} });
  }
  const { id } = request.user.account;
  const renamed = await attempt(
    request,
    () => services.passkeys.rename(id, form.get("id") ?? "", name),
    { validation_failed: problems.deceptiveName },
  );
  if ("problem" in renamed) return showSecurity(services, request, renamed.problem);
  if (renamed.value === undefined) return showSecurity(services, request, sayGone(request));
  return redirectToSecurity("passkey-renamed");
}

async function removePasskey(
  services: PageServices,
  request: SignedInRequest,
  form: Form,
): Promise<PageResponse> {
  const id = form.get("id") ?? "";
  const { lastSignIn } = request.language.messages.problems;
  const removed = await attempt(request, () => services.passkeys.remove(request.user.account, id), {
    conflict: lastSignIn,
  });
  if ("problem" in removed) return showSecurity(services, request, removed.problem);
  if (!removed.value) return showSecurity(services, request, sayGone(request));
  await record(services, request, "passkey.remove", `passkey:${id}`);
  return redirectToSecurity("passkey-removed");
}

async function setUpTotp(services: PageServices, request: SignedInRequest): Promise<PageResponse> {
  const { types } = request.language.messages.security;
  const setup = await attempt(request, () =>
    services.factors.setUpTotp(request.user.account, types.totp),
  );
  if ("problem" in setup) return showSecurity(services, request, setup.problem);
  return showTotpSetup(services, request, setup.value, FIRST_CODE);
}

async function setUpSent(
  services: PageServices,
  request: SignedInRequest,
  form: Form,
): Promise<PageResponse> {
  const { messages } = request.language;
  const type = form.get("type") === "sms" ? "sms" : "email";
  const entered = form.get("to") ?? "";
  const number = entered.replaceAll(/[\s()/-]/g, "");
  const to = type === "email" ? readEmail(entered) : PHONE_NUMBER.test(number) ? number : undefined;
  if (to === undefined) {
    const text = type === "email" ? messages.problems.email : messages.problems.phone;
    return showSecurity(services, request, { status: 422, text, fields: {} });
  }
  const { account } = request.user;
  const setup = await attempt(request, () =>
    services.factors.setUpSent(account, type, to, messages.security.types[type]),
  );
  if ("problem" in setup) return showSecurity(services, request, setup.problem);
  return showFirstCode(services, request, setup.value.id, messages.factor.sent(to), FIRST_CODE);
}

async function confirmFactor(
  services: PageServices,
  request: SignedInRequest,
  form: Form,
): Promise<PageResponse> {
  const { account } = request.user;
  const { problems, enrol } = request.language.messages;
  const id = form.get("factor_id") ?? "";
  const isFirst = (await services.factors.list(account.id)).length === 0;
  const confirmed = await attempt(
    request,
    () => services.factors.confirm(account.id, id, (form.get("code") ?? "").trim()),
    { unauthorized: problems.wrongCode },
  );
  if ("problem" in confirmed) {
    if (confirmed.problem.status === 404) return showSecurity(services, request, confirmed.problem);
    return showFirstCode(services, request, id, enrol.enterCode, FIRST_CODE, confirmed.problem);
  }
  const { kind, amr } = confirmed.value;
  await record(services, request, "mfa.enrol", `factor:${id}`, { kind });
  // A user who has just entered a code does not have to enter another one for a waiting application.
  const elevated = await complete(services, request, amr);
  const done = `${SECURITY_PATH}?done=factor-added`;
  const answer = await admit(services, request, elevated, done);
  if (!isFirst) return answer;
  return showBackupCodes(
    services,
    request,
    await services.factors.renewBackupCodes(account.id),
    done,
  );
}

async function removeFactor(
  services: PageServices,
  request: SignedInRequest,
  form: Form,
): Promise<PageResponse> {
  const id = form.get("id") ?? "";
  if (!(await services.factors.remove(request.user.account.id, id))) {
    return showSecurity(services, request, sayGone(request));
  }
  await record(services, request, "mfa.remove", `factor:${id}`);
  return redirectToSecurity("factor-removed");
}

async function renewBackupCodes(
  services: PageServices,
  request: SignedInRequest,
): Promise<PageResponse> {
  const { account } = request.user;
  const made = await attempt(request, () => services.factors.renewBackupCodes(account.id));
  if ("problem" in made) return showSecurity(services, request, made.problem);
  await record(services, request, "mfa.backup_codes", `user:${account.id}`);
  return showBackupCodes(services, request, made.value, SECURITY_PATH);
}

function readName(form: Form): string {
  return (form.get("name") ?? "").trim().slice(0, NAME_CHARS_MAX);
}

// Ends sessions without a second factor except this one, which is raised.
function complete(
  { signIn }: PageServices,
  { user: { account, session } }: SignedInRequest,
  amr: readonly string[],
): Promise<SignedIn> {
  return signIn.completeEnrolment(account, session.id, amr, { mint: false });
}

const FIRST_CODE = { action: CONFIRM_PATH, continue: undefined };

function sayGone(request: SignedInRequest): Problem {
  return { status: 404, text: request.language.messages.problems.gone, fields: {} };
}

// Records the change in the audit log and notifies the account's owner by email.
async function record(
  { audit, notices }: PageServices,
  request: SignedInRequest,
  action: SecurityEvent,
  target: string,
  detail?: Record<string, unknown>,
): Promise<void> {
  const { account } = request.user;
  await audit.record({
    action,
    actor: `user:${account.id}`,
    target,
    ...request.origin,
    ...(detail === undefined ? {} : { detail }),
  });
  notices.tell(account, action);
}
