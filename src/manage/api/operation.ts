import { listingsOf } from '../http/listing.ts'
import { type AnyOperation, operationsOf } from '../http/operation.ts'
import type { Offered, Versioned } from '../http/version.ts'
import type { ApiContext } from './context.ts'

export const operation = operationsOf<ApiContext>()
export const listing = listingsOf<ApiContext>()
export type ApiOperation = AnyOperation<ApiContext>
export type ApiOffered = Offered<ApiContext>
export type ApiVersioned = Versioned<ApiContext>
