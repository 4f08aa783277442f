"""Measuring a batch: one pass over its rows, a few thousand lists at a time.

What is added up here is whole numbers only, so no number depends on how many lists are held at a
time, on their order, or on threads.
"""
