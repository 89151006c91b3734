import { Fault } from '../shared/fault.ts'
import { mappingAt, optionalMappingAt, textAt } from './json-value.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import { fieldsOf, type OwnCertificate, ownCertificateIn } from './own-certificate.ts'

/** The content of the Secret at one time. */
interface SecretContent {
  /** `null`: nothing usable. */
  readonly own: OwnCertificate | null
  /** The object as read; `null`: the Secret does not exist. */
  readonly object: object | null
}

/** The Secret in which replicas keep their certificate. */
export class CertificateSecret {
  readonly #api: KubernetesApi
  readonly #namespace: string
  readonly #name: string
  readonly #all: string

  constructor(api: KubernetesApi, namespace: string, name: string) {
    this.#api = api
    this.#namespace = namespace
    this.#name = name
    this.#all = `/api/v1/namespaces/${namespace}/secrets`
  }

  /** Throws a Fault if the Secret belongs to another program. */
  async read(): Promise<SecretContent> {
    const { status, body } = await this.#api.get(`${this.#all}/${this.#name}`)
    if (status === 404) return { own: null, object: null }
    const secret = mappingAt('the Secret', body)
    const metadata = mappingAt('metadata', secret.get('metadata'))
    const labels = optionalMappingAt('metadata.labels', metadata.get('labels'))
    const data = optionalMappingAt('data', secret.get('data')) ?? new Map<string, unknown>()
    if (data.size > 0 && labels?.get(OURS) !== SELF_MADE)
      throw new Fault(
        'SECRET_FOREIGN',
        `the Secret ${this.#name} holds something else: name another in inject.secret, or give it the label ${OURS}: ${SELF_MADE} to have it overwritten`,
      )
    const fields = [...data].map(([name, value]) => [name, decoded(textAt(`data ${name}`, value))] as const)
    return { own: ownCertificateIn(new Map(fields)), object: Object.fromEntries(secret) }
  }

  /** `false`: another replica was faster, and its version is valid. */
  async write(before: SecretContent, own: OwnCertificate): Promise<boolean> {
    const data = Object.fromEntries(
      Object.entries(fieldsOf(own)).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
    )
    const { status } =
      before.object === null
        ? await this.#api.create(this.#all, this.#made(data))
        : await this.#api.replace(`${this.#all}/${this.#name}`, labelled(before.object, data))
    if (status === 422)
      throw new Fault('SECRET_REFUSED', `the Secret ${this.#name} is not taken by the API server as it is`)
    return status < 300
  }

  #made(data: Readonly<Record<string, string>>): object {
    const metadata = { name: this.#name, namespace: this.#namespace, labels: { [OURS]: SELF_MADE } }
    return { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata, data }
  }
}

/** Keeps fields that others have added, and the version that the update replaces. */
function labelled(object: object, data: Readonly<Record<string, string>>): object {
  const metadata = mappingAt('metadata', mappingAt('the Secret', object).get('metadata'))
  const labels = optionalMappingAt('metadata.labels', metadata.get('labels')) ?? new Map<string, unknown>()
  return {
    ...object,
    metadata: {
      ...Object.fromEntries(metadata),
      labels: { ...Object.fromEntries(labels), [OURS]: SELF_MADE },
    },
    data,
  }
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}

const OURS = 'gatehouse.dev/certificate'
const SELF_MADE = 'self-made'
