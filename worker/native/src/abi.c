/* The number by which the worker knows that this library has the functions and structures it expects. */
#define WHERRY_NATIVE_ABI 6

__attribute__((visibility("default"))) int wherry_native_abi(void) { return WHERRY_NATIVE_ABI; }
