// All cases of object storage, in the order of the run and of the report.
import type { BenchCase } from "../harness/case.ts";
import { hash } from "./cases/hash.ts";
import { jobs } from "./cases/jobs.ts";
import { keys } from "./cases/keys.ts";
import { million } from "./cases/million.ts";
import { multipart } from "./cases/multipart.ts";
import { replication } from "./cases/replication.ts";
import { search } from "./cases/search.ts";
import { select } from "./cases/select.ts";
import { tiers } from "./cases/tiers.ts";
import { vectors } from "./cases/vectors.ts";
import { getLarge, getSmall, listThousand, putLarge, putSmall } from "./cases/throughput.ts";

export const VAULT_CASES: readonly BenchCase[] = [
  putSmall,
  getSmall,
  listThousand,
  putLarge,
  getLarge,
  hash,
  million,
  multipart,
  select,
  search,
  vectors,
  jobs,
  tiers,
  keys,
  replication,
];
