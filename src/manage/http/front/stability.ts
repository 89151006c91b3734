/** What is in beta says so on every answer, whatever that is. */
export const STABILITY_HEADER = 'X-API-Stability'

/** What that header has for an address as it was sent; `null`: it is stable, or nothing of the API. */
export function stabilityOf(url: string): 'beta' | null {
  return BETA.test(url) ? 'beta' : null
}

const BETA = /^\/v2(?:[/?]|$)/
