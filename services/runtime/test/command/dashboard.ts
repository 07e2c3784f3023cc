// Every expression of the Grafana dashboard, run in Prometheus on a platform that it scrapes with the generated file.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";
import { find, makeFolder } from "@platform/testing/platform-process";
import { joinPlatform } from "./running-platform.ts";

const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
const skip = hasPrometheus || isRequired ? false : "the Debian package prometheus is not installed";
const dashboard = new URL("../../../../deploy/grafana-dashboard.json", import.meta.url);
/** Expressions without a result on an idle platform without clients, tunnels, errors and backups. */
const MAY_BE_EMPTY =
  /clients_dropped|connections_refused|status=~"5|vault_errors|notify_sent|upstream_errors|backup_completed|retries|logins_total|tokens_issued|revocations_age/;

/** Metrics of alerts without a series on a platform without certificates that has sent no mail. */
const LATER = ["platform_certificate_expiry_timestamp_seconds", "platform_notify_sent_total"];

function listAlertMetrics(): string[] {
  const rules = readFileSync(new URL("alerts.yml", dashboard), "utf8");
  const names = new Set(rules.match(/\b(?:platform|process)_[a-z_]+/g));
  return [...names].filter((name) => !LATER.includes(name));
}

interface Target {
  expr: string;
}

function listExpressions(): string[] {
  const { panels } = JSON.parse(readFileSync(dashboard, "utf8")) as {
    panels: { targets?: Target[] }[];
  };
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

test(
  "Prometheus accepts every expression, and each has a result or a reason",
  { skip },
  async (t) => {
    const base = makeFolder();
    const { started, data } = await joinPlatform();
    const config = join(base, "prometheus.yml");
    const scrape = readFileSync(join(data, "prometheus.yml"), "utf8");
    writeFileSync(config, `global: { scrape_interval: 1s }\n${scrape}`);
    const port = await findFreePort();
    const prometheus = spawn(
      "prometheus",
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(base, "tsdb")}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    t.after(() => prometheus.kill("SIGKILL"));
    const query = async (expr: string) => {
      const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expr)}`;
      const answer = await fetch(url);
      return (await answer.json()) as {
        status: string;
        error?: string;
        data: { result: { metric: Record<string, string>; value: [number, string] }[] };
      };
    };
    const waitFor = async (what: string, look: () => Promise<boolean>): Promise<void> => {
      for (let round = 0; round < 300; round += 1) {
        if (await look().catch(() => false)) return;
        await sleep(100);
      }
      assert.fail(`not seen: ${what}`);
    };
    const labels = ["gateway", "identity", "storage", "messaging", "mail"];
    await waitFor("every service is scraped", async () => {
      const { data: found } = await query('up{job="platform"} == 1');
      const services = found.result.map(({ metric }) => metric["service"]);
      return labels.every((label) => services.includes(label));
    });
    await fetch(`${find(started, "gate").url}/hello`);
    // Refused without a signature, and counted.
    await fetch(find(started, "vault").url);
    for (const counter of ["platform_http_requests_total", "platform_vault_http_requests_total"]) {
      await waitFor(`three scrapes of ${counter}`, async () => {
        const { data: found } = await query(`count_over_time(${counter}[1m]) >= 3`);
        return found.result.length > 0;
      });
    }

    const expressions = listExpressions();
    assert.ok(expressions.length > 40);
    const empty: string[] = [];
    for (const expression of expressions) {
      const {
        status,
        error,
        data: found,
      } = await query(expression.replaceAll("$__rate_interval", "1m"));
      assert.equal(status, "success", `${expression}: ${error}`);
      if (found.result.length === 0 && !MAY_BE_EMPTY.test(expression)) empty.push(expression);
    }
    assert.deepEqual(empty, []);
    // A renamed metric would silence its alert.
    const unknown: string[] = [];
    for (const name of listAlertMetrics()) {
      const { data: found } = await query(`count(${name})`);
      if (found.result.length === 0) unknown.push(name);
    }
    assert.deepEqual(unknown, []);
  },
);
