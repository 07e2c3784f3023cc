// The sign-in page: identity, or a service's own credentials.
import { useMemo, useState } from "preact/hooks";
import type { LoginRequest, ServiceId, ServiceInfo } from "@platform/console/contract";
import type { ApiFailure } from "../api/api.ts";
import { queryValue } from "../router/router.ts";
import { config, identityHref, login, signInReason } from "../session/session.ts";
import { TextField } from "../view/controls.tsx";
import { Brand } from "../view/icon.tsx";
import { toFailure } from "../view/load.ts";
import { Problem } from "../view/problem.tsx";
import { StateMark } from "../view/state.tsx";
import { t } from "../words/words.ts";
import { listAreas } from "./navigation.ts";
import { placeName } from "./rail.tsx";

/** The page without a session. */
export function SignIn() {
  const { sign_in: methods = [], services = [], mode } = config.value ?? {};
  const withCredentials = services.filter(({ credentials }) => credentials !== null);
  const hasIdentity = methods.includes("oidc");
  const hasCredentials = methods.includes("credentials") && withCredentials.length > 0;
  const up = services.filter((service) => service.is_up).length;
  return (
    <div class="sign-in">
      <Lines />
      <main>
        <div class="box">
          <div class="box-head">
            <Brand />
            <b>platform</b>
            <span class="env">{placeName()}</span>
          </div>
          <h1>{t("Sign in")}</h1>
          {signInReason.value === "expired" && (
            <p class="banner">{t("The session has ended. Sign in again.")}</p>
          )}
          <Refusal />
          {hasIdentity && (
            <>
              <p class="lead">{t("Identity signs you in and returns you here.")}</p>
              <a class="btn pri wide" href={identityHref()}>
                {t("Continue with identity")}
              </a>
            </>
          )}
          {hasIdentity && hasCredentials && (
            <div class="or">{t("or with a service's own credentials")}</div>
          )}
          {hasCredentials && (
            <Credentials services={withCredentials} isChoice={mode === "platform"} />
          )}
          <p class="hint">
            {t(
              "The session ends after 12 hours at the latest. The browser keeps one cookie that scripts cannot read.",
            )}
          </p>
        </div>
        <footer>
          <span>platform {services.find(({ version }) => version !== "")?.version ?? ""}</span>
          <span class="st">
            <StateMark kind={up === services.length ? "ok" : "warn"} />
            {t("{n} of {all} services up", { n: up, all: services.length })}
          </span>
        </footer>
      </main>
    </div>
  );
}

// The callback of identity names what went wrong.
function Refusal() {
  const problem = queryValue("problem");
  if (problem === "") return null;
  return (
    <p class="banner" role="alert">
      {problem === "expired"
        ? t("The sign-in took too long, or began in another browser. Try again.")
        : problem === "unavailable"
          ? t("Identity does not answer. Try again in a few seconds.")
          : t("Identity refused the sign-in.")}
    </p>
  );
}

/** The form of a service's own credentials. */
export function Credentials({
  services,
  isChoice,
}: {
  services: ServiceInfo[];
  isChoice: boolean;
}) {
  const [id, setId] = useState<ServiceId>(services[0]!.id);
  const [name, setName] = useState("");
  const [secret, setSecret] = useState("");
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const service = services.find((one) => one.id === id) ?? services[0]!;
  const label = listAreas().find((area) => area.page === undefined && area.id === id)?.label ?? id;
  const submit = async (): Promise<void> => {
    setBusy(true);
    try {
      await login(describeLogin(service, isChoice, name, secret));
    } catch (error) {
      setFailure(toFailure(error));
    } finally {
      setBusy(false);
    }
  };
  const form = service.credentials;
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy) void submit();
      }}
    >
      {isChoice && (
        <label class="label">
          <span>{t("Service")}</span>
          <select
            class="field"
            value={id}
            onChange={(event) => setId(event.currentTarget.value as ServiceId)}
          >
            {services.map((one) => (
              <option key={one.id} value={one.id}>
                {listAreas().find((area) => area.page === undefined && area.id === one.id)?.label ??
                  one.id}
              </option>
            ))}
          </select>
        </label>
      )}
      {form === "keys" && (
        <TextField
          label={t("Access key")}
          value={name}
          onInput={setName}
          isMono
          required
          autocomplete="username"
        />
      )}
      {form === "password" && (
        <TextField
          label={t("Username")}
          value={name}
          onInput={setName}
          required
          autocomplete="username"
        />
      )}
      <TextField
        label={form === "keys" ? t("Secret key") : form === "password" ? t("Password") : t("Token")}
        value={secret}
        onInput={setSecret}
        type="password"
        isMono
        required
        autocomplete="current-password"
      />
      {failure !== undefined && <Problem failure={failure} />}
      <button type="submit" class="btn wide" disabled={isBusy}>
        {isChoice ? t("Sign in to {name} only", { name: label }) : t("Sign in")}
      </button>
    </form>
  );
}

function describeLogin(
  service: ServiceInfo,
  isChoice: boolean,
  name: string,
  secret: string,
): LoginRequest {
  const target = isChoice ? { service: service.id } : {};
  if (service.credentials === "keys") return { ...target, access_key: name, secret_key: secret };
  if (service.credentials === "password") return { ...target, username: name, password: secret };
  return { ...target, token: secret };
}

const POINTS = 90;

/** One line a service: an ornament in the colours of the charts. */
function Lines() {
  const lines = useMemo(
    () =>
      listAreas()
        .filter(({ page }) => page === undefined)
        .map((area, index) => ({ area, points: drawLine(index) })),
    [],
  );
  return (
    <div class="art" aria-hidden="true">
      {lines.map(({ area, points }) => (
        <div key={area.id} class={`hue hue-${area.id}`}>
          <svg viewBox="0 0 880 100" preserveAspectRatio="none">
            <polyline points={points} vector-effect="non-scaling-stroke" />
          </svg>
          <span>{area.label}</span>
        </div>
      ))}
    </div>
  );
}

function drawLine(seed: number): string {
  let state = seed * 7919 + 17;
  let level = 50;
  const points: string[] = [];
  for (let index = 0; index <= POINTS; index += 1) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    level += (state / 2_147_483_648 - 0.5) * 18 + (50 - level) * 0.08;
    points.push(`${((index * 880) / POINTS).toFixed(1)},${level.toFixed(1)}`);
  }
  return points.join(" ");
}
