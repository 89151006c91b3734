import { Fault } from '../shared/fault.ts'
import type { PatchOperation } from './json-patch.ts'
import { mappingAt, optionalListAt, optionalMappingAt, textAt } from './json-value.ts'
import type { KubernetesApi } from './kubernetes-api.ts'

interface ServiceName {
  readonly name: string
  readonly namespace: string
}

/** Makes the API server trust these CAs (PEM) for all webhooks that call this Service. Throws a Fault. */
export async function announceCa(
  api: KubernetesApi,
  configuration: string,
  service: ServiceName,
  bundle: string,
): Promise<void> {
  const path = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${configuration}`
  const caBundle = Buffer.from(bundle).toString('base64')
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const { status, body } = await api.get(path)
    if (status !== 200) throw missing(configuration, 'is not there')
    const patch = patchFor(configuration, body, service, caBundle)
    if (patch.length === 0 || (await api.patch(path, patch)).status === 200) return
    // Another client changed it in between: try again.
  }
  throw new Fault(
    'WEBHOOK_CONTENDED',
    `the MutatingWebhookConfiguration ${configuration} changes all the time`,
  )
}

/** Empty if nothing needs to change. */
function patchFor(
  configuration: string,
  body: unknown,
  service: ServiceName,
  caBundle: string,
): PatchOperation[] {
  const found = mappingAt('the MutatingWebhookConfiguration', body)
  const clients = (optionalListAt('webhooks', found.get('webhooks')) ?? []).map((webhook, index) => {
    const at = `webhooks[${index}]`
    const client = mappingAt(`${at}.clientConfig`, mappingAt(at, webhook).get('clientConfig'))
    return { index, client, called: optionalMappingAt(`${at}.clientConfig.service`, client.get('service')) }
  })
  const ours = clients.filter(
    ({ called }) => called?.get('name') === service.name && called.get('namespace') === service.namespace,
  )
  if (ours.length === 0)
    throw missing(
      configuration,
      `has no webhook that calls the Service ${service.name} in ${service.namespace}`,
    )
  const stale = ours.filter(({ client }) => client.get('caBundle') !== caBundle)
  if (stale.length === 0) return []
  const metadata = mappingAt('metadata', found.get('metadata'))
  const version = textAt('metadata.resourceVersion', metadata.get('resourceVersion'))
  return [
    { op: 'test', path: '/metadata/resourceVersion', value: version },
    ...stale.map(({ index }) => {
      return { op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: caBundle } as const
    }),
  ]
}

function missing(configuration: string, what: string): Fault {
  return new Fault('WEBHOOK_MISSING', `the MutatingWebhookConfiguration ${configuration} ${what}`)
}

const TRIES_MAX = 5
