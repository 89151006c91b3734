/** The static table of HPACK (RFC 7541 Appendix A). Index 0 is not used. */
// biome-ignore format: a table
const FIELDS: readonly (readonly [name: string, value: string])[] = [
  ['', ''],
  [':authority', ''], [':method', 'GET'], [':method', 'POST'], [':path', '/'], [':path', '/index.html'],
  [':scheme', 'http'], [':scheme', 'https'], [':status', '200'], [':status', '204'], [':status', '206'],
  [':status', '304'], [':status', '400'], [':status', '404'], [':status', '500'], ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'], ['accept-language', ''], ['accept-ranges', ''], ['accept', ''],
  ['access-control-allow-origin', ''], ['age', ''], ['allow', ''], ['authorization', ''], ['cache-control', ''],
  ['content-disposition', ''], ['content-encoding', ''], ['content-language', ''], ['content-length', ''],
  ['content-location', ''], ['content-range', ''], ['content-type', ''], ['cookie', ''], ['date', ''], ['etag', ''],
  ['expect', ''], ['expires', ''], ['from', ''], ['host', ''], ['if-match', ''], ['if-modified-since', ''],
  ['if-none-match', ''], ['if-range', ''], ['if-unmodified-since', ''], ['last-modified', ''], ['link', ''],
  ['location', ''], ['max-forwards', ''], ['proxy-authenticate', ''], ['proxy-authorization', ''], ['range', ''],
  ['referer', ''], ['refresh', ''], ['retry-after', ''], ['server', ''], ['set-cookie', ''],
  ['strict-transport-security', ''], ['transfer-encoding', ''], ['user-agent', ''], ['vary', ''], ['via', ''],
  ['www-authenticate', ''],
]

export const STATIC_NAMES: readonly string[] = FIELDS.map(([name]) => name)
export const STATIC_VALUES: readonly string[] = FIELDS.map(([, value]) => value)
export const STATIC_MAX = FIELDS.length - 1

/** The lowest index of each name. Fields of one name have successive indexes. */
export const STATIC_INDEXES: ReadonlyMap<string, number> = new Map(
  STATIC_NAMES.map((name, index) => [name, index] as const)
    .slice(1)
    .toReversed(),
)
