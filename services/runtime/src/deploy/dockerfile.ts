// The Dockerfile of a service.
import { IMAGE_USER } from "./image.ts";

/** Port of the service in its container. */
export const CONTAINER_PORT = 3_000;

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
