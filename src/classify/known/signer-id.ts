/** The id of the signer with this key directory. The directory of a whole origin belongs to that origin. */
export function signerAt(place: string): string {
  const { origin, href } = new URL(place)
  return href === `${origin}/` || href === origin + DIRECTORY ? origin : href
}

/** Where this project publishes its own signature agent card. */
export const CARD = '/.well-known/signature-agent-card'

/** The path of an origin's key directory (draft-ietf-webbotauth-httpsig-directory). */
export const DIRECTORY = '/.well-known/http-message-signatures-directory'
