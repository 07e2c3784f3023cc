// DMARC: who sends in the name of the domains, and whether receivers believe it.
import type { Answer } from "../contract/answer.ts";
import { withQuery } from "../api/api.ts";
import { formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { FactRow, Facts, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { language, t } from "../words/words.ts";

const PAGE = 100;
const MONTHS = 13;

type Source = Answer<"notify", "GET /dmarc/sources">["sources"][number];

type Report = Answer<"notify", "GET /dmarc/report">;

export function DmarcPage() {
  useCrumbs([{ label: t("Mail") }, { label: t("DMARC") }]);
  const months = listMonths();
  const period = queryValue("period") || months[0]!;
  const cursor = queryValue("cursor");
  const selected = queryValue("sel");
  const report = useLoad(`report ${period}`, () =>
    callService<Report>("notify", withQuery("/dmarc/report", { period })),
  );
  const sources = useLoad(`sources ${period} ${cursor}`, () =>
    callService<Answer<"notify", "GET /dmarc/sources">>(
      "notify",
      withQuery("/dmarc/sources", { period, cursor, limit: PAGE }),
    ),
  );
  const chosen = sources.data.value?.sources.find(({ source_ip: ip }) => ip === selected);
  return (
    <Split
      pane={chosen === undefined ? undefined : <SourcePane source={chosen} />}
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title
        actions={
          <select
            class="field small"
            aria-label={t("Month")}
            value={period}
            onChange={(event) =>
              setQuery({ period: event.currentTarget.value, cursor: undefined, sel: undefined })
            }
          >
            {months.map((month) => (
              <option key={month} value={month}>
                {formatMonth(month)}
              </option>
            ))}
          </select>
        }
      >
        {t("DMARC")}
      </Title>
      <Loading of={report}>
        {(sum) => (
          <p class="bar lead">
            {sum.total_messages === 0
              ? t("No report of this month has arrived.")
              : t(
                  "{aligned} of {all} messages in the name of your domains were aligned; SPF failed for {spf}, DKIM for {dkim}.",
                  {
                    aligned: formatNumber(sum.aligned),
                    all: formatNumber(sum.total_messages),
                    spf: formatNumber(sum.failed_spf),
                    dkim: formatNumber(sum.failed_dkim),
                  },
                )}
          </p>
        )}
      </Loading>
      {report.failure.value?.status !== 403 && (
        <Loading of={sources}>
          {({ sources: list, next_cursor: next, is_cut: isCut }) => (
            <>
              {list.length === 0 && (
                <Empty title={t("No sources")}>
                  <p>
                    {t(
                      "Receivers send aggregate reports to the address of the DMARC record, once a day.",
                    )}
                  </p>
                </Empty>
              )}
              {list.length > 0 && (
                <Table
                  label={t("Sources")}
                  rows={list}
                  idOf={({ source_ip: ip }) => ip}
                  selected={selected}
                  onSelect={({ source_ip: ip }) => setQuery({ sel: ip })}
                  columns={[
                    { title: t("Source"), kind: "mono", render: ({ source_ip: ip }) => ip },
                    {
                      title: t("Aligned"),
                      kind: "w-m",
                      render: (one) => (
                        <State kind={kindOf(one)}>
                          {formatShare(one.aligned, one.total_messages)}
                        </State>
                      ),
                    },
                    {
                      title: t("Messages"),
                      kind: "w-s",
                      isNumber: true,
                      render: (one) => formatNumber(one.total_messages),
                    },
                    {
                      title: "SPF",
                      kind: "w-s wide-only",
                      isNumber: true,
                      render: ({ spf }) => formatShare(spf.pass, spf.pass + spf.fail),
                    },
                    {
                      title: "DKIM",
                      kind: "w-s wide-only",
                      isNumber: true,
                      render: ({ dkim }) => formatShare(dkim.pass, dkim.pass + dkim.fail),
                    },
                    {
                      title: t("Refused"),
                      kind: "w-s wide-only",
                      isNumber: true,
                      render: ({ dispositions: { quarantine, reject } }) =>
                        formatNumber(quarantine + reject),
                    },
                  ]}
                />
              )}
              {isCut && (
                <p class="bar lead">
                  {t("There are more reports or sources than are summed here.")}
                </p>
              )}
              <NextPage cursor={next} />
            </>
          )}
        </Loading>
      )}
    </Split>
  );
}

function SourcePane({ source }: { source: Source }) {
  const { spf, dkim, dispositions } = source;
  return (
    <>
      <Section title={source.source_ip}>
        <State kind={kindOf(source)}>
          {t("{n} of {all} aligned", {
            n: formatNumber(source.aligned),
            all: formatNumber(source.total_messages),
          })}
        </State>
        {source.aligned < source.total_messages && (
          <p>
            {t(
              "If this host is yours, give it a DKIM key of the domain or add it to the SPF record. If not, it imitates you: a policy of quarantine or reject stops it.",
            )}
          </p>
        )}
      </Section>
      <Section title={t("Results")}>
        <Facts>
          <FactRow term="SPF">
            {t("{pass} passed, {fail} failed", {
              pass: formatNumber(spf.pass),
              fail: formatNumber(spf.fail),
            })}
          </FactRow>
          <FactRow term="DKIM">
            {t("{pass} passed, {fail} failed", {
              pass: formatNumber(dkim.pass),
              fail: formatNumber(dkim.fail),
            })}
          </FactRow>
          <FactRow term={t("Delivered")}>{formatNumber(dispositions.none)}</FactRow>
          <FactRow term={t("Quarantined")}>{formatNumber(dispositions.quarantine)}</FactRow>
          <FactRow term={t("Rejected")}>{formatNumber(dispositions.reject)}</FactRow>
        </Facts>
      </Section>
      <Section title={t("In the name of")}>
        <p class="mono wrap">{source.domains.join(", ")}</p>
      </Section>
      <Section title={t("Reported by")}>
        <p class="wrap">{source.reporters.join(", ")}</p>
      </Section>
    </>
  );
}

function kindOf({ aligned, total_messages: all }: Source): StateKind {
  if (aligned === all) return "ok";
  return aligned === 0 ? "bad" : "warn";
}

function formatShare(part: number, all: number): string {
  return all === 0 ? "–" : `${Math.floor((part / all) * 100)} %`;
}

function formatMonth(month: string): string {
  const name = new Intl.DateTimeFormat(language(), {
    month: "long",
    year: "numeric",
    timeZone: "UTC",
  });
  return name.format(Date.parse(`${month}-01`));
}

// The latest first, in UTC like the periods of the service.
function listMonths(): string[] {
  const now = new Date();
  return Array.from({ length: MONTHS }, (_, back) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString().slice(0, 7),
  );
}
