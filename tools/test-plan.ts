// Which test files there are, and what their long forms are.
import { globSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** One run of a test file. */
export interface TestPlan {
  /** Path from the root of the repository; the name of a group. */
  file: string;
  /** The files of a group, which run in one process. */
  members?: readonly string[];
  /** Variables of this run in addition to the environment. */
  env: Record<string, string>;
  timeoutMs: number;
}

/** Patterns of all test files. */
export const shortForms = [
  "packages/*/test/**/*.test.ts",
  "services/*/test/**/*.test.ts",
  "apps/*/test/**/*.test.ts",
  "tests/**/*.test.ts",
  "bench/test/**/*.test.ts",
  "editors/test/*.test.ts",
  "tools/*.test.ts",
];

const HOUR_MS = 3_600_000;

function longForm(file: string, env: Record<string, string>): TestPlan {
  return { file, env, timeoutMs: HOUR_MS };
}

/** Tests that short runs try on Node alone: they start the gateway by `runtimesOfRules`. */
const ON_ALL_RUNTIMES = globSync("services/gate/test/{listen,process}/*.test.ts")
  .sort()
  .filter((file) => /runtimesOfRules|PLATFORM_TEST_RUNTIMES/.test(readFileSync(file, "utf8")));

/** Every file of each service's data folder × every fault. */
const FILE_FAULTS = globSync("{packages,services}/*/test/**/file-faults.test.ts").sort();

/** The long forms, which `npm test` runs in short. */
export const longForms: readonly TestPlan[] = [
  ...ON_ALL_RUNTIMES.map((file) => longForm(file, { PLATFORM_TEST_RUNTIMES: "all" })),
  longForm("tests/conformance/acme/acme.test.ts", {
    PLATFORM_ACME_HANDSHAKES: "1000",
    PLATFORM_ACME_KILLS: "all",
  }),
  longForm("tests/conformance/acme/platform.test.ts", { PLATFORM_ACME_PLATFORMS: "all" }),
  longForm("services/gate/test/process/killed-sources.test.ts", { PLATFORM_SOURCE_KILLS: "all" }),
  longForm("services/gate/test/soak/edge/soak.test.ts", { PLATFORM_EDGE_SOAK_SECONDS: "1200" }),
  longForm("services/gate/test/soak/ai/soak.test.ts", { PLATFORM_AI_SOAK_SECONDS: "900" }),
  longForm("packages/log/test/engine/kill.test.ts", { PLATFORM_KILL_ROUNDS: "200" }),
  longForm("services/runtime/test/command/offload.test.ts", { PLATFORM_OFFLOAD_RESTARTS: "2" }),
  longForm("packages/log/test/engine/offload-kill.test.ts", { PLATFORM_KILL_ROUNDS: "100" }),
  longForm("packages/log/test/engine/offload-crash.test.ts", { PLATFORM_CRASH_STATES: "10000" }),
  longForm("packages/log/test/engine/fault-matrix.test.ts", { PLATFORM_FAULT_ROUNDS: "10" }),
  ...FILE_FAULTS.map((file) => longForm(file, { PLATFORM_FAULT_ROUNDS: "3" })),
  longForm("packages/log/test/engine/crash-states.test.ts", { PLATFORM_CRASH_STATES: "20000" }),
  longForm("packages/log/test/engine/many-topics.test.ts", { PLATFORM_LOG_TOPICS: "100000" }),
  longForm("tests/nodes/nodes.test.ts", {
    PLATFORM_NODES_SECONDS: "600",
    PLATFORM_NODES_RATE: "50",
  }),
  longForm("packages/service/test/schedule/kill.test.ts", { PLATFORM_SCHEDULE_KILLS: "20" }),
  longForm("services/runtime/test/editor/random-walk.test.ts", { PLATFORM_EDITOR_EDITS: "2000" }),
  longForm("services/gate/test/process/ai-budgets.test.ts", { PLATFORM_GATE_AI_KILLS: "100" }),
  longForm("services/notify/test/crash/kill.test.ts", { PLATFORM_NOTIFY_KILLS: "50" }),
  longForm("services/notify/test/crash/calls-kill.test.ts", { PLATFORM_NOTIFY_CALL_KILLS: "30" }),
  longForm("services/notify/test/inbound/kill.test.ts", { PLATFORM_NOTIFY_INBOUND_KILLS: "50" }),
  longForm("services/pulse/test/anomaly/simulated-week.test.ts", {
    PLATFORM_ANOMALY_LOOK_EVERY: "3",
  }),
  longForm("services/vault/test/serving/select-fence.test.ts", { PLATFORM_VAULT_ATTACKS: "4" }),
  longForm("services/pulse/test/store/key-history.test.ts", { PLATFORM_EVENTS: "2000000" }),
  longForm("services/pulse/test/crash/kill.test.ts", { PLATFORM_BROKER_KILLS: "200" }),
  longForm("services/pulse/test/crash/crash-states.test.ts", {
    PLATFORM_BROKER_CRASH_STATES: "600",
  }),
  longForm("services/pulse/test/kafka/clients/kill.test.ts", { PLATFORM_KAFKA_KILLS: "50" }),
  longForm("services/pulse/test/mqtt/clients/kill.test.ts", { PLATFORM_MQTT_KILLS: "100" }),
  longForm("services/pulse/test/dispatch/bursts.test.ts", {
    PLATFORM_PULSE_BURST_MESSAGES: "100000",
  }),
  longForm("services/pulse/test/clients/page-queue.test.ts", {
    PLATFORM_PULSE_CLIENT_ROUNDS: "50",
    PLATFORM_PULSE_CLIENT_TABS: "10",
  }),
  longForm("services/pulse/test/mqtt/clients/mosquitto-bridge.test.ts", {
    PLATFORM_MQTT_BRIDGE_MESSAGES: "10000",
  }),
  longForm("services/pulse/test/kafka/group-chaos/chaos.test.ts", {
    PLATFORM_KAFKA_CHAOS_SECONDS: "600",
  }),
  longForm("services/pulse/test/consumer-group/chaos.test.ts", { PLATFORM_GROUP_RUNS: "2000" }),
  longForm("tests/release/stranger.test.ts", { PLATFORM_TEST_RELEASE: "whole" }),
  longForm("tests/release/container.test.ts", { PLATFORM_TEST_RELEASE: "whole" }),
  longForm("services/runtime/test/command/killed-start.test.ts", { PLATFORM_KILLED_STARTS: "50" }),
  longForm("services/vault/test/crash/kill.test.ts", { VAULT_KILL_ROUNDS: "200" }),
  longForm("services/vault/test/remote/tier-kill.test.ts", { VAULT_TIER_KILLS: "all" }),
  longForm("services/vault/test/replication/kill.test.ts", { VAULT_REPLICATION_KILLS: "all" }),
  longForm("bench/test/vault/radosgw.test.ts", { PLATFORM_RADOSGW: "1" }),
  longForm("bench/test/pulse/offload-stores.test.ts", { PLATFORM_OFFLOAD_MIB: "3072" }),
  longForm("services/vault/test/serving/sql.test.ts", { VAULT_SQL_WRITES: "500" }),
  longForm("packages/wasm/test/http/fuel.test.ts", { PLATFORM_GUEST_MODULES: "100000" }),
  longForm("tests/conformance/http-wasm/builds.test.ts", { PLATFORM_GUEST_BUILDS: "1" }),
  longForm("services/gate/test/policy-compiler/policy.test.ts", { PLATFORM_POLICIES: "10000" }),
  longForm("services/gate/test/process/middleware-kill.test.ts", { PLATFORM_GUEST_KILLS: "50" }),
  longForm("services/gate/test/process/middleware-rollout.test.ts", {
    PLATFORM_GUEST_CHANGES: "1000",
  }),
  longForm("services/vault/test/serving/vectors.test.ts", { VAULT_VECTOR_KILLS: "50" }),
  longForm("services/vault/test/select/differential.test.ts", { PLATFORM_QUESTIONS: "2000" }),
  longForm("services/vault/test/search/vector-search.test.ts", { VAULT_VECTORS: "20000" }),
  longForm("services/vault/test/search/recall.test.ts", { VAULT_RECALL_VECTORS: "200000" }),
  longForm("packages/kernel/test/backup/repository.test.ts", { REPOSITORY_FLIPS: "60" }),
  longForm("services/vault/test/guest/triggers.test.ts", { VAULT_TRIGGER_KILLS: "50" }),
  longForm("services/vault/test/guest/large-object.test.ts", { VAULT_GUEST_BYTES: "5368709120" }),
  longForm("services/vault/test/guest/stopped-guests.test.ts", { VAULT_TRIGGERED_PUTS: "100000" }),
  longForm("services/vault/test/job/many.test.ts", { VAULT_JOB_KEYS: "10000" }),
  longForm("services/vault/test/job/job-crash.test.ts", { VAULT_JOB_KILLS: "50" }),
  longForm("services/vault/test/keys/rotation-kill.test.ts", { VAULT_KEY_KILLS: "50" }),
  longForm("services/vault/test/backup/backup-crash.test.ts", { VAULT_BACKUP_KILLS: "50" }),
  longForm("services/vault/test/crash/fault-matrix.test.ts", { VAULT_FAULT_MATRIX: "all" }),
  longForm("services/vault/test/crash/crash-states.test.ts", { VAULT_CRASH_STATES: "500" }),
  longForm("services/runtime/test/watch/watch.test.ts", { PLATFORM_WATCH_CHANGES: "50" }),
  longForm("services/tunnel/test/relay/faults.test.ts", { PLATFORM_TUNNEL_FAULT_SECONDS: "60" }),
  longForm("services/tunnel/test/relay/real-clients.test.ts", {
    PLATFORM_TUNNEL_TRANSFER_BYTES: "2147483648",
  }),
  longForm("services/tunnel/test/soak/soak.test.ts", { PLATFORM_TUNNEL_SOAK_SECONDS: "600" }),
  longForm("packages/http1/test/peers/boundaries.test.ts", { PLATFORM_FUZZ_PAYLOADS: "20000" }),
  longForm("services/gate/test/policy-compiler/policy.test.ts", { PLATFORM_POLICIES: "10000" }),
  longForm("packages/wasm/test/http/fuel.test.ts", { PLATFORM_GUEST_MODULES: "100000" }),
  longForm("services/gate/test/process/many-routes.test.ts", { PLATFORM_GATE_ROUTES: "50000" }),
  longForm("services/gate/test/process/flood.test.ts", { PLATFORM_FLOOD_BYTES: "1073741824" }),
  longForm("services/gate/test/soak/soak.test.ts", {
    PLATFORM_GATE_SOAK_SECONDS: "1200",
    PLATFORM_TEST_RUNTIMES: "all",
  }),
  longForm("services/runtime/test/data/many-rows.test.ts", { PLATFORM_DATA_ROWS: "5000000" }),
  longForm("tests/browser/console/overview.test.ts", { PLATFORM_REST_SECONDS: "600" }),
  longForm("tests/browser/console/pictures.test.ts", {
    PLATFORM_TEST_PICTURES: join(tmpdir(), "platform-pictures"),
  }),
  longForm("tests/browser/console/storage-list.test.ts", { PLATFORM_CONSOLE_OBJECTS: "20000" }),
  longForm("tests/soak/soak.test.ts", { PLATFORM_SOAK_SECONDS: "600" }),
];
