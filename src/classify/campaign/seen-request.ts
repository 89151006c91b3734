/** What a request is for, as far as campaigns distinguish it. */
export const REQUEST_KIND = {
  /** Not a browser's, or neither page nor part. */
  other: 0,
  /** A page that no page of the same site led to. */
  page: 1,
  /** A page that was reached from another page of the same site. */
  followed: 2,
  /** What a browser loads for a page, or what the scripts of a page request. */
  part: 3,
} as const

/** One request, as far as campaigns are found by it. All hashes have 32 bits. */
export interface SeenRequest {
  /** Salted hash of the client's network. */
  network: number
  /** Hash of the site. */
  host: number
  /** Hash of the stable key, the HTTP/2 fingerprint, and the claimed browser with its main version. */
  program: number
  /** Hash of the header order. */
  order: number
  kind: number
  /** Hash of the path and the query. */
  target: number
  atMs: number
}
