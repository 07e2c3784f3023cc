// Icons: one stroke on a grid of 16.
import type { ServiceId } from "@platform/console/contract";

const PATHS = {
  overview: "M2.5 9.5 5 9.5 6.8 4l2.6 8.5L11 7.5h2.5",
  gate: "M2 8h4.2M6.2 8 13.5 3.5M6.2 8h7.3M6.2 8l7.3 4.5",
  auth: "M8 2.2a3 3 0 1 1 0 6 3 3 0 0 1 0-6ZM2.8 13.8c.5-2.6 2.6-4 5.2-4s4.7 1.4 5.2 4",
  vault: "M2.5 5 8 2.2 13.5 5 8 7.8 2.5 5ZM2.5 8.2 8 11l5.5-2.8M2.5 11.2 8 14l5.5-2.8",
  pulse: "M2.5 4h7M2.5 8h11M2.5 12h8.2M12 4h1.5",
  notify: "M2.2 4h11.6v8.4H2.2zM2.2 4.4 8 9l5.8-4.6",
  tunnel: "M2.2 13V9.2a5.8 5.8 0 0 1 11.6 0V13M5.4 13V9.4a2.6 2.6 0 0 1 5.2 0V13",
  projects: "M2.5 3h4.6v4.6H2.5zM8.9 3h4.6v4.6H8.9zM2.5 9.4h4.6V14H2.5zM8.9 9.4h4.6V14H8.9z",
  runtime: "M8 2.3v3M8 10.7v3M2.3 8h3M10.7 8h3M4 4l2 2M10 10l2 2M12 4l-2 2M6 10l-2 2",
  access: "M5.2 7.2a2.6 2.6 0 1 1 0 5.2 2.6 2.6 0 0 1 0-5.2ZM7.2 8 13 2.4M10.6 4.6l2 2",
  settings: "M3 5h6M12 5h1M3 11h1M7 11h6M10.5 3.5v3M5.5 9.5v3",
  search: "M7 2.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4ZM10.2 10.2 13.5 13.5",
  copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
  filter: "M2.5 4h11L9.4 8.8V13L6.6 11.6V8.8z",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  again: "M3 8a5 5 0 1 0 1.6-3.7M3 2.6v2.9h2.9",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.2v9.6L12.5 8z",
  back: "M9.8 3.5 5.2 8l4.6 4.5",
  next: "M6.2 3.5 10.8 8l-4.6 4.5",
  more: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  dots: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  down: "M8 3v9M4.5 8.8 8 12.4l3.5-3.6",
  up: "M8 13V4M4.5 7.2 8 3.6l3.5 3.6",
  file: "M4 2h5.2L12.5 5.3V14H4zM9 2.2v3.3h3.3",
  folder: "M2 4h4.3l1.2 1.5H14V13H2z",
  image: "M2.5 3h11v10h-11zM2.8 11.2 6 8l2.5 2.4L10.6 8.5l2.7 2.6M10.4 5.6h.1",
  finger:
    "M5 12.6c.9-1.4 1-2.7 1-4.3a2 2 0 0 1 4 0c0 2-.2 3.7-1.2 5.4M3.2 10.5c.3-.8.4-1.5.4-2.3a4.4 4.4 0 0 1 8.8 0c0 1.3-.1 2.5-.4 3.6M5.2 3.4a6 6 0 0 1 5.6 0",
  phone: "M5 1.8h6v12.4H5zM7.2 12.2h1.6",
  edit: "M3 13l.6-2.8L10.8 3l2.2 2.2-7.2 7.2zM9.4 4.4l2.2 2.2",
  trash: "M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.6 9h5.8l.6-9",
  out: "M9.5 3.5h-6v9h6M7 8h6.5M11 5.5 13.5 8 11 10.5",
} as const;

/** Name of an icon; services have their own. */
export type IconName = keyof typeof PATHS;

/** An icon; decorative, its text stands beside it. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.4"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

/** A service's mark in its colour. */
export function ServiceMark({ id, size = 16 }: { id: ServiceId; size?: number }) {
  return (
    <span class={`hue hue-${id} mark`}>
      <Icon name={id} size={size} />
    </span>
  );
}

/** The product's mark. */
export function Brand() {
  return (
    <svg class="brand-mark" width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
      <rect width="20" height="20" rx="3" />
      <path d="M4.5 8.6v2.8M7.25 6v8M10 3.8v12.4M12.75 7v6M15.5 8.9v2.2" />
    </svg>
  );
}
