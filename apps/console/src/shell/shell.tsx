// The frame around all pages.
import { useEffect } from "preact/hooks";
import { startLive } from "../live/live.ts";
import { navigate, path, queryValue } from "../router/router.ts";
import {
  config,
  identityHref,
  loadSession,
  session,
  sessionFailure,
  sessionLoss,
  signInReason,
} from "../session/session.ts";
import { Dialog } from "../view/dialog.tsx";
import { Problem } from "../view/problem.tsx";
import { Toasts } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { Head } from "./head.tsx";
import { KeysHelp } from "./keys.tsx";
import { LeaveDialog } from "./leave-dialog.tsx";
import { CurrentPage } from "./pages.tsx";
import { Palette } from "./palette.tsx";
import { LoopbackBanner, PhoneBar, Rail } from "./rail.tsx";
import { Credentials, SignIn } from "./sign-in.tsx";
import { TraceStrip } from "./trace-strip.tsx";

/** The console. */
export function Shell() {
  const failure = sessionFailure.value;
  if (failure !== undefined) {
    return (
      <main class="lonely">
        <h1 class="hidden">platform</h1>
        <Problem failure={failure} retry={() => void loadSession()} />
      </main>
    );
  }
  if (config.value === undefined || session.value === undefined) return <Beginning />;
  if (session.value === null) return <SignIn />;
  return <Frame />;
}

// Signed in with a service's credentials: the view that was asked for is in the query.
function leaveSignIn(): void {
  if (path.value !== "/sign-in") return;
  const to = queryValue("to");
  navigate(to.startsWith("/ui/") ? to.slice("/ui".length) : "/", { replace: true });
}

function Frame() {
  useEffect(leaveSignIn, [path.value]);
  useEffect(startLive, []);
  return (
    <div class="app">
      <a class="skip" href="#content">
        {t("Skip to the content")}
      </a>
      <Rail />
      <div class="main">
        <Head />
        <TraceStrip />
        <main id="content" class="body" tabIndex={-1}>
          <LoopbackBanner />
          <CurrentPage />
        </main>
      </div>
      <PhoneBar />
      <Palette />
      <KeysHelp />
      <RecentSignIn />
      <SessionLost />
      <LeaveDialog />
      <Toasts />
    </div>
  );
}

/** The frame before it is known who uses it. */
function Beginning() {
  return (
    <div class="app">
      <nav class="rail" />
      <div class="main">
        <header class="top" />
        <TraceStrip />
        <main class="body">
          <p class="loading" role="status">
            {sessionLoss.value === "restoring"
              ? t("Waiting for identity to sign you in again …")
              : t("Loading …")}
          </p>
        </main>
      </div>
    </div>
  );
}

/** The console was restarted: typed text stays until there is a session again. */
function SessionLost() {
  const { sign_in: methods = [], services = [], mode } = config.value ?? {};
  const kind = sessionLoss.value;
  if (kind === undefined) return null;
  const withCredentials = services.filter(({ credentials }) => credentials !== null);
  const isOwn = methods.includes("credentials") && withCredentials.length > 0;
  const title = t("The console has lost the session");
  if (kind === "restoring") {
    return (
      <Dialog title={title} onClose={() => undefined} isHeld>
        <div class="dialog-body">
          <p role="status">{t("Waiting for identity to sign you in again …")}</p>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={title} onClose={() => undefined} isHeld>
      <div class="dialog-body">
        <p>{t("Sign in again: what you have typed stays on this page.")}</p>
        {methods.includes("oidc") && (
          <a class="btn pri" href={identityHref()} target="_blank" rel="noopener">
            {t("Sign in in another tab")}
          </a>
        )}
        {isOwn && <Credentials services={withCredentials} isChoice={mode === "platform"} />}
      </div>
    </Dialog>
  );
}

function RecentSignIn() {
  if (signInReason.value !== "recent") return null;
  const close = (): void => {
    signInReason.value = undefined;
  };
  return (
    <Dialog title={t("Sign in again")} onClose={close}>
      <div class="dialog-body">
        <p>
          {t("Changes of users and keys, and deletions, require a sign-in of the last 10 minutes.")}
        </p>
      </div>
      <footer class="dialog-foot">
        <button type="button" class="btn" onClick={close}>
          {t("Cancel")}
        </button>
        <a class="btn pri" href={identityHref("login")}>
          {t("Continue with identity")}
        </a>
      </footer>
    </Dialog>
  );
}
