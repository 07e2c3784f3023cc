// Texts of problems: services write English sentences; other languages have one for each common code, before that sentence.
import type { ConsoleReason } from "@platform/console/contract";
import type { ApiFailure } from "../api/api.ts";
import { describeFault } from "../words/fault.ts";
import { language, t } from "../words/words.ts";

/** The sentence of a failure. */
export function ProblemText({ failure }: { failure: ApiFailure }) {
  const known = language() === "en" ? undefined : wordProblem(failure);
  // The page's own failures have no code, and are in the language in use.
  const isForeign = language() !== "en" && failure.code !== "";
  const faults = failure.fields.map((field) => [field.path, describeFault(field)] as const);
  if (faults.length > 0 && faults.every(([, words]) => words !== undefined)) {
    return (
      <>
        <p>{known}</p>
        {faults.map(([path, words]) => (
          <p key={path} class="i3">
            {path !== "" && <code>{path}</code>} {words}
          </p>
        ))}
      </>
    );
  }
  return (
    <>
      {known !== undefined && <p>{known}</p>}
      <p class={known === undefined ? undefined : "i3"} lang={isForeign ? "en" : undefined}>
        {failure.message}
      </p>
    </>
  );
}

function wordProblem({ code, reason }: ApiFailure): string | undefined {
  return (reason === undefined ? undefined : wordReason(reason)) ?? wordCode(code);
}

function wordReason(reason: ConsoleReason): string | undefined {
  switch (reason) {
    case "service_down":
      return t("The service does not answer.");
    case "not_signed_in_to_service":
      return t("This session has no credentials of the service.");
    case "sessions_unavailable":
      return t("Sessions cannot be read at the moment. Nobody is signed out.");
    case "recent_sign_in_required":
      return t("This change requires a sign-in of the last ten minutes.");
    default:
      return undefined;
  }
}

function wordCode(code: string): string | undefined {
  const known: Readonly<Record<string, string>> = {
    bad_request: t("The service does not understand the request."),
    validation_failed: t("Values are missing or not valid."),
    unauthorized: t("The service requires a sign-in."),
    forbidden: t("This account may not do that."),
    mfa_required: t("That requires a second factor."),
    policy_denied: t("A policy denies it."),
    not_found: t("It does not exist, or does not exist any more."),
    conflict: t("It contradicts the present state."),
    gone: t("It does not exist any more."),
    precondition_failed: t("It was changed meanwhile."),
    payload_too_large: t("It is too large."),
    unprocessable: t("The service cannot do that with these values."),
    recipient_suppressed: t("The recipient is suppressed."),
    recipient_rejected: t("The recipient was refused."),
    template_failed: t("The template cannot be filled."),
    too_many_requests: t("Too many requests were made."),
    internal: t("The service has failed unexpectedly; its log says why."),
    unavailable: t("The service cannot do that at the moment."),
    overloaded: t("The service is overloaded."),
    queue_full: t("The queue is full."),
    ERR_BACKPRESSURE: t("Too many messages wait to be read."),
    upstream_unreachable: t("The service cannot be reached."),
    upstream_timeout: t("The service did not answer in time."),
    insufficient_storage: t("There is not enough space on the disk."),
  };
  return Object.hasOwn(known, code) ? known[code] : undefined;
}
