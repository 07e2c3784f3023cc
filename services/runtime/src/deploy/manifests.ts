// Kubernetes manifests of a service.
import type { Deployment } from "kubernetes-types/apps/v1.js";
import type {
  Container,
  PersistentVolumeClaim,
  Probe,
  Service,
  Volume,
} from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import { stringify } from "yaml";
import { CONTAINER_PORT } from "./dockerfile.ts";
import { IMAGE_USER } from "./image.ts";

/** Options of {@link createManifests}. */
export interface ManifestOptions {
  readonly name: string;
  readonly version: string;
  readonly image: string;
  /** Undefined leaves it to kubectl. */
  readonly namespace: string | undefined;
  /**
   * `none` and `postgres` run two replicas and replace them one by one; `sqlite` runs one, which stops before its successor
   * starts, because both would use one volume.
   */
  readonly storage: "none" | "sqlite" | "postgres";
}

/** A manifest. */
export type Manifest = Deployment | Service | PersistentVolumeClaim | PodDisruptionBudget;

const VOLUME_SIZE = "1Gi";
/** Longer than the drain of the service and the sleep before it. */
const GRACE_SECONDS = 45;
/** Until all nodes have removed the stopping pod from the service. */
const SLEEP_SECONDS = 5;

/** Creates the manifests. */
export function createManifests(options: ManifestOptions): Manifest[] {
  const { name, storage } = options;
  const metadata = createMetadata(options);
  const selector = { "app.kubernetes.io/name": name };
  const service: Service = {
    apiVersion: "v1",
    kind: "Service",
    metadata,
    spec: { selector, ports: [{ name: "http", port: 80, targetPort: "http" }] },
  };
  const deployment = createDeployment(options, metadata, selector);
  if (storage === "sqlite") {
    const claim: PersistentVolumeClaim = {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { ...metadata, name: `${name}-data` },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: VOLUME_SIZE } },
      },
    };
    return [claim, service, deployment];
  }
  const budget: PodDisruptionBudget = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata,
    spec: { minAvailable: 1, selector: { matchLabels: selector } },
  };
  return [service, deployment, budget];
}

/** Formats manifests as YAML documents. */
export function formatManifests(manifests: readonly Manifest[]): string {
  return manifests
    .map((one) => stringify(one, { aliasDuplicateObjects: false, lineWidth: 0 }))
    .join("---\n");
}

function createMetadata({ name, version, namespace }: ManifestOptions): ObjectMeta {
  const labels = {
    "app.kubernetes.io/name": name,
    "app.kubernetes.io/version": version,
    "app.kubernetes.io/managed-by": "platform",
  };
  return namespace === undefined ? { name, labels } : { name, namespace, labels };
}

function createDeployment(
  { name, image, storage }: ManifestOptions,
  metadata: ObjectMeta,
  selector: Record<string, string>,
): Deployment {
  const data: Volume =
    storage === "sqlite"
      ? { name: "data", persistentVolumeClaim: { claimName: `${name}-data` } }
      : { name: "data", emptyDir: {} };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    spec: {
      replicas: storage === "sqlite" ? 1 : 2,
      strategy:
        storage === "sqlite"
          ? { type: "Recreate" }
          : { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      selector: { matchLabels: selector },
      template: {
        metadata: { labels: { ...metadata.labels } },
        spec: {
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: GRACE_SECONDS,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: IMAGE_USER,
            runAsGroup: IMAGE_USER,
            fsGroup: IMAGE_USER,
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [createContainer(name, image, storage)],
          volumes: [data, { name: "tmp", emptyDir: {} }],
        },
      },
    },
  };
}

function createContainer(
  name: string,
  image: string,
  storage: ManifestOptions["storage"],
): Container {
  const database: Container["env"] = [
    {
      name: "DATABASE_URL",
      valueFrom: { secretKeyRef: { name: `${name}-database`, key: "url" } },
    },
  ];
  return {
    name,
    image,
    ports: [{ name: "http", containerPort: CONTAINER_PORT }],
    env: [
      { name: "PORT", value: String(CONTAINER_PORT) },
      { name: "PLATFORM_DATA_DIR", value: "/data" },
      { name: "PLATFORM_LOG_FORMAT", value: "json" },
      ...(storage === "postgres" ? database : []),
    ],
    envFrom: [
      { configMapRef: { name: `${name}-env`, optional: true } },
      { secretRef: { name: `${name}-env`, optional: true } },
    ],
    resources: {
      requests: { cpu: "100m", memory: "128Mi" },
      limits: { cpu: "1", memory: "512Mi" },
    },
    startupProbe: probe("/readyz", { periodSeconds: 1, failureThreshold: 60 }),
    readinessProbe: probe("/readyz", { periodSeconds: 5, failureThreshold: 2 }),
    livenessProbe: probe("/healthz", { periodSeconds: 10, failureThreshold: 3 }),
    lifecycle: { preStop: { sleep: { seconds: SLEEP_SECONDS } } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: [
      { name: "data", mountPath: "/data" },
      { name: "tmp", mountPath: "/tmp" },
    ],
  };
}

function probe(path: string, timing: Pick<Probe, "periodSeconds" | "failureThreshold">): Probe {
  return { httpGet: { path, port: "http" }, timeoutSeconds: 2, ...timing };
}
