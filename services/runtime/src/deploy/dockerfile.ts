// The Dockerfile of a service.
import { IMAGE_USER } from "./image.ts";

/** Port of the service in its container. */
export const CONTAINER_PORT = 3_000;

/**
 * Formats the Dockerfile of a script. What is the same for all services comes first, so that images share the layers of Node
 * and of the user.
 */
export function formatScriptDockerfile(): string {
  const major = Number.parseInt(process.versions.node, 10);
  return `# Another image with Node ${major} or newer, such as one of a mirror: --build-arg NODE_BASE=…
ARG NODE_BASE=node:${major}-trixie-slim
FROM \${NODE_BASE}
RUN install -d -o ${IMAGE_USER} -g ${IMAGE_USER} -m 0700 /data
ENV PORT=${CONTAINER_PORT} PLATFORM_DATA_DIR=/data PLATFORM_LOG_FORMAT=json
USER ${IMAGE_USER}:${IMAGE_USER}
EXPOSE ${CONTAINER_PORT}
VOLUME /data
ENTRYPOINT ["node", "/app/service.cjs"]
COPY app /app
`;
}

/** Formats the Dockerfile. `folder` is the image's file system, relative to the Dockerfile. */
export function formatDockerfile(folder: string): string {
  return `FROM scratch
COPY ${folder}/ /
COPY --chown=${IMAGE_USER}:${IMAGE_USER} ${folder}/data /data
USER ${IMAGE_USER}:${IMAGE_USER}
ENV PORT=${CONTAINER_PORT} PLATFORM_DATA_DIR=/data PLATFORM_LOG_FORMAT=json
EXPOSE ${CONTAINER_PORT}
VOLUME /data
ENTRYPOINT ["/service"]
`;
}
