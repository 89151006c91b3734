/** The authentication scheme `License` (RSL 1.0 §6.2), which is written like Bearer (RFC 6750 §2.1). */
export type LicenseFault = 'invalid_request' | 'invalid_token' | 'server_error'

/** The token in a value of Authorization; `null`: it has another scheme. */
export function licenseToken(authorization: string): string | 'invalid_request' | null {
  if (!isLicense(authorization)) return null
  const token = authorization.slice(SCHEME.length).trimStart()
  return TOKEN.test(token) ? token : 'invalid_request'
}

export function isLicense(authorization: string): boolean {
  const scheme = authorization.slice(0, SCHEME.length)
  return scheme.toLowerCase() === SCHEME || authorization.toLowerCase() === SCHEME.trimEnd()
}

const SCHEME = 'license '
/** At most as long as other headers with credentials. */
const TOKEN = /^[\w.~+/-]{1,4096}={0,2}$/
