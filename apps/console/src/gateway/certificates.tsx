// Certificates in use: of the listener, for upstreams, and authorities, with the time that is left.
import type { Answer } from "../contract/answer.ts";
import { formatDate, formatMoment, formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { FactRow, Facts, Section } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";

const EVERY_MS = 60_000;

type Certificate = Answer<"gate", "GET /admin/certificates">["items"][number];

export function CertificatesPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("Certificates") }]);
  const loaded = useLoad(
    "certificates",
    async () =>
      (await callService<Answer<"gate", "GET /admin/certificates">>("gate", "/admin/certificates"))
        .items,
    EVERY_MS,
  );
  const chosen = loaded.data.value?.find(({ id }) => id === queryValue("sel"));
  return (
    <Split
      pane={chosen === undefined ? undefined : <CertificatePane certificate={chosen} />}
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title>{t("Certificates")}</Title>
      <Loading of={loaded}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t("No certificate is in use")}>
              <p>{t("Set tls_cert and tls_key of the gateway, or root_ca_path of a route.")}</p>
            </Empty>
          ) : (
            <Table
              label={t("Certificates")}
              rows={list}
              idOf={({ id }) => id}
              selected={queryValue("sel")}
              onSelect={({ id }) => setQuery({ sel: id })}
              columns={[
                { title: t("Names"), kind: "mono", sort: nameOf, render: nameOf },
                {
                  title: t("Use"),
                  kind: "w-m wide-only",
                  render: ({ use }) => describeUse(use),
                },
                {
                  title: t("Ends"),
                  kind: "w-s wide-only",
                  isNumber: true,
                  sort: ({ not_after: at }) => at ?? "",
                  render: ({ not_after: at }) => (at === null ? "–" : formatDate(at)),
                },
                {
                  title: t("Days left"),
                  kind: "w-xs wide-only",
                  isNumber: true,
                  sort: ({ days_left: days }) => days ?? Number.NEGATIVE_INFINITY,
                  render: ({ days_left: days }) => (days === null ? "–" : formatNumber(days)),
                },
                {
                  title: t("State"),
                  kind: "w-m",
                  render: (certificate) => <CertificateState certificate={certificate} />,
                },
              ]}
            />
          )
        }
      </Loading>
    </Split>
  );
}

function nameOf({ names, subject, file }: Certificate): string {
  return names.join(", ") || subject || file;
}

function describeUse(use: Certificate["use"]): string {
  if (use === "listener") return t("for clients of the gateway");
  if (use === "client") return t("for upstreams");
  return t("verifies upstreams");
}

function CertificateState({ certificate }: { certificate: Certificate }) {
  const [kind, word] = describeStatus(certificate);
  return <State kind={kind}>{word}</State>;
}

function describeStatus(one: Certificate): [kind: StateKind, word: string] {
  switch (one.status) {
    case "valid":
      return ["ok", t("valid")];
    case "expiring":
      return ["warn", t("ends in {n} days", { n: one.days_left ?? 0 })];
    case "expired":
      return ["bad", t("expired")];
    case "not_yet_valid":
      return ["warn", t("not valid yet")];
    case "unreadable":
      return ["bad", t("unreadable")];
    default:
      return one.status satisfies never;
  }
}

function CertificatePane({ certificate: one }: { certificate: Certificate }) {
  return (
    <Section title={t("Certificate")} note={describeUse(one.use)}>
      <p>
        <CertificateState certificate={one} />
      </p>
      {one.detail !== undefined && <p class="i2 wrap">{one.detail}</p>}
      <Facts>
        <FactRow term={t("Names")} isMono>
          <span class="wrap">{one.names.length === 0 ? "–" : one.names.join(", ")}</span>
        </FactRow>
        <FactRow term={t("Subject")} isMono>
          <span class="wrap">{one.subject}</span>
        </FactRow>
        <FactRow term={t("Issuer")} isMono>
          <span class="wrap">{one.issuer}</span>
        </FactRow>
        <FactRow term={t("Valid from")}>
          {one.not_before === null ? "–" : formatMoment(one.not_before)}
        </FactRow>
        <FactRow term={t("Ends")}>
          {one.not_after === null ? "–" : formatMoment(one.not_after)}
        </FactRow>
        <FactRow term={t("Days left")}>
          {one.days_left === null ? "–" : formatNumber(one.days_left)}
        </FactRow>
        <FactRow term={t("Serial number")} isMono>
          <span class="wrap">{one.serial}</span>
        </FactRow>
        <FactRow term="SHA-256" isMono>
          <span class="wrap">{one.fingerprint_sha256}</span>
          <CopyButton text={one.fingerprint_sha256} label={t("Copy the fingerprint")} />
        </FactRow>
        <FactRow term={t("File")} isMono>
          <span class="wrap">{one.file === "" ? "–" : one.file}</span>
        </FactRow>
        <FactRow term={t("Routes")} isMono>
          <span class="wrap">{one.routes.length === 0 ? "–" : one.routes.join(", ")}</span>
        </FactRow>
      </Facts>
    </Section>
  );
}
