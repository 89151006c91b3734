import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { isOwnName, isPublicAddress } from '../../../identity/fetch/public-address.ts'

/** Resolves a host name to its addresses; rejects if it has no address. */
type FindAddresses = (name: string) => Promise<readonly string[]>

/**
 * The normalized URL of a webhook, or what is wrong with it in `refused`. A name that cannot be resolved yet
 * is accepted, because each delivery checks the address that it connects to.
 */
export async function readWebhookUrl(
  text: string,
  allowPrivate: boolean,
  find: FindAddresses = addressesOf,
): Promise<{ readonly url: string } | { readonly refused: string }> {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    return { refused: 'must be a URL with https://' }
  if (url.username !== '' || url.password !== '') return { refused: 'has a user or a password in it' }
  if (url.hash !== '' || text.includes('#')) return { refused: 'has a fragment (#) in it' }
  if (allowPrivate) return { url: url.href }
  if (url.protocol === 'http:')
    return {
      refused:
        'must be https://, as events hold addresses of people; webhooks.allow_private_addresses allows http://',
    }
  const isPublic = await isPublicHost(url.hostname.replace(/^\[(.*)\]$/, '$1'), find)
  return isPublic ? { url: url.href } : { refused: NOT_PUBLIC }
}

async function isPublicHost(host: string, find: FindAddresses): Promise<boolean> {
  if (isIP(host) !== 0) return isPublicAddress(host)
  if (isOwnName(host)) return false
  // A name server that is slow on purpose must not block the request.
  const late = new AbortController()
  const found = await Promise.race([find(host).catch(() => []), wait(LOOKUP_MS, [], late)])
  late.abort()
  return found.every(isPublicAddress)
}

async function addressesOf(name: string): Promise<readonly string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address)
}

const LOOKUP_MS = 2_000
const NOT_PUBLIC = 'is not on the public internet; webhooks.allow_private_addresses allows it'
