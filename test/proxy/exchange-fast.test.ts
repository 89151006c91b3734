import { exchangeContract } from './exchange-contract.ts'

exchangeContract(true)
