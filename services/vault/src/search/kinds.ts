// Kinds of objects, by the beginnings of their content types, or by their extensions where the type is a default.

/** A kind of objects. */
export interface Kind {
  readonly types: readonly string[];
  readonly extensions: readonly string[];
}

const TABLE: readonly (readonly [name: string, types: string, extensions: string])[] = [
  ["image", "image/", "jpg jpeg png gif webp avif heic heif bmp tif tiff svg ico raw cr2 nef psd"],
  ["video", "video/", "mp4 m4v mov avi mkv webm wmv mpg mpeg flv 3gp ogv"],
  ["audio", "audio/", "mp3 m4a wav flac ogg oga opus aac wma aiff mid midi"],
  [
    "document",
    "application/pdf application/msword application/vnd.openxmlformats-officedocument.wordprocessingml application/vnd.oasis.opendocument.text application/rtf application/epub",
    "pdf doc docx odt rtf epub pages",
  ],
  [
    "spreadsheet",
    "application/vnd.ms-excel application/vnd.openxmlformats-officedocument.spreadsheetml application/vnd.oasis.opendocument.spreadsheet text/csv",
    "xls xlsx ods csv tsv numbers",
  ],
  [
    "presentation",
    "application/vnd.ms-powerpoint application/vnd.openxmlformats-officedocument.presentationml application/vnd.oasis.opendocument.presentation",
    "ppt pptx odp key",
  ],
  [
    "archive",
    "application/zip application/gzip application/x-tar application/x-7z application/x-rar application/vnd.rar application/x-bzip application/zstd application/x-xz",
    "zip gz tgz tar 7z rar bz2 xz zst lz4",
  ],
  ["text", "text/", "txt md markdown rst log"],
  [
    "code",
    "application/javascript application/typescript text/javascript text/x-",
    "js mjs cjs ts tsx jsx py go rs java c h cpp hpp cs rb php sh sql kt swift",
  ],
  [
    "data",
    "application/json application/xml application/x-ndjson application/vnd.apache.parquet",
    "json jsonl ndjson xml yaml yml toml parquet avro orc csv tsv",
  ],
];

/** All kinds by their names. */
export const KINDS: ReadonlyMap<string, Kind> = new Map(
  TABLE.map(([name, types, extensions]) => [
    name,
    { types: types.split(" "), extensions: extensions.split(" ") },
  ]),
);
