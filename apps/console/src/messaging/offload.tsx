// Object storage for closed segments: its state, the form that sets it, and the end of it.
import { useState } from "preact/hooks";
import type { Answer } from "../contract/answer.ts";
import { formatAgo, formatBytes, formatMoment, formatNumber } from "../format/format.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { callBroker } from "./broker.ts";

type Status = Answer<"pulse", "GET /admin/offloader">;

const PATH = "/admin/offloader";
const EVERY_MS = 5_000;

type Open = "set" | "stop" | undefined;

/** The state of the whole broker, for its operator. */
export function OffloadPage() {
  useCrumbs([{ label: t("Messaging") }, { label: t("Offload") }]);
  const loaded = useLoad("offload", () => callBroker<Status>(PATH), EVERY_MS);
  const [open, setOpen] = useState<Open>(undefined);
  const close = (): void => setOpen(undefined);
  const reload = (): Promise<void> => loaded.reload();
  return (
    <Split>
      <Title>{t("Offload")}</Title>
      <Loading of={loaded}>
        {(status) => (
          <div class="narrow">
            <StoreSection status={status} onOpen={setOpen} />
            <Figures status={status} />
            {open === "set" && <StoreDialog status={status} onClose={close} onSaved={reload} />}
            {open === "stop" && <StopDialog status={status} onClose={close} onStopped={reload} />}
          </div>
        )}
      </Loading>
    </Split>
  );
}

function StoreSection({ status, onOpen }: { status: Status; onOpen: (open: Open) => void }) {
  const { source, enabled, last_error: error } = status;
  const fixed = source === "config" ? t("The configuration sets it") : undefined;
  return (
    <Section
      title={t("Object storage")}
      action={
        <>
          <Action kind="quiet" onClick={() => onOpen("set")} blocked={fixed}>
            {source === null ? t("Set…") : t("Change")}
          </Action>
          {source !== null && (
            <Action kind="quiet" onClick={() => onOpen("stop")} blocked={fixed}>
              {t("Stop…")}
            </Action>
          )}
        </>
      }
    >
      <Facts>
        <FactRow term={t("State")}>
          <State kind={source === null || !enabled ? "off" : error === null ? "ok" : "warn"}>
            {describeState(status)}
          </State>
        </FactRow>
        <FactRow term={t("Address")} isMono>
          {status.s3_endpoint ?? "–"}
        </FactRow>
        <FactRow term={t("Bucket")} isMono>
          {status.s3_bucket === null ? "–" : `${status.s3_bucket}/${status.s3_prefix ?? ""}`}
        </FactRow>
        {error !== null && (
          <FactRow term={t("Last failure")}>
            <span class="bad" title={formatMoment(error.at)}>
              {`${error.operation}: ${error.code}, ${formatAgo(error.at)}`}
            </span>
          </FactRow>
        )}
      </Facts>
      <p class="hint">{t("Topics use it if their setting says so; all readers see both.")}</p>
    </Section>
  );
}

function describeState({ source, enabled, last_error: error }: Status): string {
  if (source === null) return t("not set");
  if (!enabled) return t("only read");
  return error === null ? t("in use") : t("tried again");
}

function Figures({ status }: { status: Status }) {
  const { last_upload_at: uploaded, oldest_pending_at: oldest } = status;
  return (
    <Section title={t("Segments")}>
      <Facts>
        <FactRow term={t("in the store")} isMono>
          {`${formatNumber(status.remote_segments)} · ${formatBytes(status.remote_bytes)}`}
        </FactRow>
        <FactRow term={t("waiting")} isMono>
          {`${formatNumber(status.pending_segments)} · ${formatBytes(status.pending_bytes)}`}
        </FactRow>
        <FactRow term={t("oldest of them")}>{oldest === null ? "–" : formatAgo(oldest)}</FactRow>
        <FactRow term={t("last upload")}>{uploaded === null ? "–" : formatAgo(uploaded)}</FactRow>
        <FactRow term={t("read cache")} isMono>
          {formatBytes(status.cache_bytes)}
        </FactRow>
      </Facts>
    </Section>
  );
}

function StoreDialog(props: { status: Status; onClose: () => void; onSaved: () => Promise<void> }) {
  const { status } = props;
  const [place, setPlace] = useState<Place>({
    s3_endpoint: status.s3_endpoint ?? "",
    s3_bucket: status.s3_bucket ?? "",
    s3_region: status.s3_region ?? "us-east-1",
    s3_prefix: status.s3_prefix ?? "",
  });
  const [token, setToken] = useState("");
  return (
    <FormDialog
      title={t("Object storage for closed segments")}
      submit={t("Try and save")}
      isDisabled={place.s3_endpoint === "" || place.s3_bucket === "" || token === ""}
      onClose={props.onClose}
      onSubmit={async () => {
        await callBroker(PATH, { method: "POST", json: { ...place, s3_token: token } });
        say(t("The store works and is in use."));
        await props.onSaved();
      }}
    >
      <PlaceFields place={place} onChange={setPlace} />
      <TextField
        label={t("Access key and secret")}
        name="s3_token"
        value={token}
        onInput={setToken}
        type="password"
        hint={t("ACCESS_KEY:SECRET_KEY; it is kept, and never shown again.")}
        autocomplete="off"
        isMono
        required
      />
    </FormDialog>
  );
}

/** Address of the store, in the names of the request. */
interface Place {
  s3_endpoint: string;
  s3_bucket: string;
  s3_region: string;
  s3_prefix: string;
}

function PlaceFields({ place, onChange }: { place: Place; onChange: (place: Place) => void }) {
  return (
    <>
      <TextField
        label={t("Address")}
        name="s3_endpoint"
        value={place.s3_endpoint}
        onInput={(s3_endpoint) => onChange({ ...place, s3_endpoint })}
        placeholder="https://s3.example.org"
        isMono
        required
      />
      <TextField
        label={t("Bucket")}
        name="s3_bucket"
        value={place.s3_bucket}
        onInput={(s3_bucket) => onChange({ ...place, s3_bucket })}
        isMono
        required
      />
      <TextField
        label={t("Prefix")}
        name="s3_prefix"
        value={place.s3_prefix}
        onInput={(s3_prefix) => onChange({ ...place, s3_prefix })}
        hint={t("Empty, or ending in /")}
        isMono
      />
      <TextField
        label={t("Region")}
        name="s3_region"
        value={place.s3_region}
        onInput={(s3_region) => onChange({ ...place, s3_region })}
        isMono
      />
    </>
  );
}

function StopDialog(props: {
  status: Status;
  onClose: () => void;
  onStopped: () => Promise<void>;
}) {
  const { remote_segments: segments } = props.status;
  return (
    <FormDialog
      title={t("Stop moving segments")}
      submit={t("Stop")}
      isDestructive
      onClose={props.onClose}
      onSubmit={async () => {
        await callBroker(`${PATH}${segments === 0 ? "" : "?force=true"}`, { method: "DELETE" });
        await props.onStopped();
      }}
    >
      <p class="lead">
        {segments === 0
          ? t("Nothing is in the store: it is forgotten.")
          : t("{n} segments in the store are read on, and removed by retention.", {
              n: formatNumber(segments),
            })}
      </p>
    </FormDialog>
  );
}
