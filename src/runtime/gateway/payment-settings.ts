import type { StartupConfig } from '../../config/config.ts'
import type { PaymentSettings } from '../../manage/payments/cashier.ts'
import { pemIn } from '../pem-file.ts'

export async function paymentSettings({
  terms,
  facilitator,
  licenseServer,
  retentionMs,
}: StartupConfig['payments']): Promise<PaymentSettings> {
  return {
    ...{ terms, retentionMs },
    facilitator:
      facilitator === null
        ? null
        : {
            ...{
              url: facilitator.url,
              timeoutMs: facilitator.timeoutMs,
              ca: await pemIn(facilitator.caFile),
            },
            token: facilitator.token?.reveal() ?? null,
          },
    licenseServer:
      licenseServer === null
        ? null
        : {
            ...{ url: licenseServer.url, timeoutMs: licenseServer.timeoutMs, cacheMs: licenseServer.cacheMs },
            ...{ ca: await pemIn(licenseServer.caFile), clientId: licenseServer.clientId },
            clientSecret: licenseServer.clientSecret?.reveal() ?? null,
          },
  }
}
