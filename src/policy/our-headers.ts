/** Whether a header, in lower case, is one that only we set. */
export function isOurs(name: string): boolean {
  return OURS.test(name)
}

const OURS = /^x-(?:agent-|(?:ja4|ja4h|ja4s|http2)-fingerprint$)/
