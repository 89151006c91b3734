/** Whether a method is in the IANA HTTP Method Registry (RFC 9110 §16.1). Methods are case-sensitive (§9.1). */
export function isRegisteredMethod(method: string): boolean {
  return REGISTERED.has(method)
}

/**
 * Whether a method is a registered one in another case, such as `post`. A rule sees a different method, but
 * many apps ignore the case of a method. `method` is a token: ASCII only.
 */
export function isMiscasedMethod(method: string): boolean {
  return !REGISTERED.has(method) && method.length <= METHOD_LENGTH_MAX && REGISTERED.has(method.toUpperCase())
}

const REGISTERED: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'CONNECT',
  'TRACE',
  'QUERY',
  'PRI',
  // WebDAV: RFC 3253, 3648, 3744, 4437, 4791, 4918, 5323, 5842.
  'ACL',
  'BASELINE-CONTROL',
  'BIND',
  'CHECKIN',
  'CHECKOUT',
  'COPY',
  'LABEL',
  'LOCK',
  'MERGE',
  'MKACTIVITY',
  'MKCALENDAR',
  'MKCOL',
  'MKREDIRECTREF',
  'MKWORKSPACE',
  'MOVE',
  'ORDERPATCH',
  'PROPFIND',
  'PROPPATCH',
  'REBIND',
  'REPORT',
  'SEARCH',
  'UNBIND',
  'UNCHECKOUT',
  'UNLOCK',
  'UPDATE',
  'UPDATEREDIRECTREF',
  'VERSION-CONTROL',
  // RFC 2068.
  'LINK',
  'UNLINK',
])
/** The length of the longest registered method. */
export const METHOD_LENGTH_MAX = Math.max(...[...REGISTERED].map(({ length }) => length))
