//! Why a pod is not ready, read from the pod itself.
