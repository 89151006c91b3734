/** The header on every answer of a beta version, success or error. */
export const STABILITY_HEADER = 'X-API-Stability'

/** The header value for a request URL; `null`: stable, or not part of the API. */
export function stabilityOf(url: string): 'beta' | null {
  return BETA.test(url) ? 'beta' : null
}

const BETA = /^\/v2(?:[/?]|$)/
